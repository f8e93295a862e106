import type { Rest } from '../../schema/plugin.js'
import type { RequestContext } from '../http/context.js'
import { fill } from './operations.js'

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and the links that explain them. */
export function deprecationHeaders(
  deprecation: NonNullable<Rest['deprecation']>,
  { baseUrl, sunset, params }: { baseUrl: string; sunset: Date; params: Record<string, string | undefined> },
) {
  return {
    deprecation: `@${deprecation.since.getTime() / 1000}`,
    sunset: sunset.toUTCString(),
    link: [
      `<${baseUrl}/docs>; rel="deprecation"; type="text/html"`,
      `<${baseUrl}${fill(deprecation.successor, params)}>; rel="successor-version"`,
    ].join(', '),
  }
}

/** Marks every response of a deprecated operation, refusals included. */
export function setDeprecationHeaders(
  headers: Record<string, string>,
  { operation, params = {} }: RequestContext,
  options: { baseUrl: string; sunset: Date },
): void {
  const deprecation = operation?.rest.deprecation
  if (!deprecation) return
  const { link, ...others } = deprecationHeaders(deprecation, { ...options, params })
  Object.assign(headers, others)
  headers.link = headers.link ? `${headers.link}, ${link}` : link
}
