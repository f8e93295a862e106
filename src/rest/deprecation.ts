import { fill, type Operation } from '../../schema/rest-operations.js'

export interface DeprecationOptions {
  baseUrl: string
  sunset: Date
}

/**
 * If the operation is deprecated: `Deprecation` (RFC 9745), `Sunset` (RFC 8594) and the links that explain them, for the
 * values of a path. Every response of the operation has these headers, refusals included.
 */
export function setDeprecationHeaders(
  headers: Record<string, string>,
  { rest: { deprecation } }: Pick<Operation, 'rest'>,
  params: Record<string, unknown>,
  { baseUrl, sunset }: DeprecationOptions,
): void {
  if (!deprecation) return
  const successor = baseUrl + fill(deprecation.successor, params)
  const links = `<${baseUrl}/docs>; rel="deprecation"; type="text/html", <${successor}>; rel="successor-version"`
  headers.deprecation = `@${deprecation.since.getTime() / 1000}`
  headers.sunset = sunset.toUTCString()
  headers.link = headers.link ? `${headers.link}, ${links}` : links
}
