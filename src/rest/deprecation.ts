import type { Rest } from '../../schema/plugin.js'
import type { RequestContext } from '../http/context.js'
import { fill } from './operations.js'

export interface DeprecationOptions {
  baseUrl: string
  sunset: Date
}

/** `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and the links that explain them, for the values of a path. */
export function createDeprecation(
  { since, successor }: NonNullable<Rest['deprecation']>,
  { baseUrl, sunset }: DeprecationOptions,
) {
  const deprecation = `@${since.getTime() / 1000}`
  const end = sunset.toUTCString()
  const link = `<${baseUrl}/docs>; rel="deprecation"; type="text/html", <${baseUrl}`
  return (headers: Record<string, string>, params: Record<string, string | undefined>): void => {
    headers.deprecation = deprecation
    headers.sunset = end
    const links = `${link}${fill(successor, params)}>; rel="successor-version"`
    headers.link = headers.link ? `${headers.link}, ${links}` : links
  }
}

/** The step that marks every response of a deprecated operation, refusals included. */
export function createDeprecations(options: DeprecationOptions) {
  const known = new Map<Rest, ReturnType<typeof createDeprecation>>()
  return (headers: Record<string, string>, { operation, params = {} }: RequestContext): void => {
    if (!operation?.rest.deprecation) return
    const { rest } = operation
    const set = known.get(rest) ?? createDeprecation(operation.rest.deprecation, options)
    known.set(rest, set)
    set(headers, params)
  }
}
