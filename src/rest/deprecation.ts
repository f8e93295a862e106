import { fill, type Operation } from '../../schema/operations.js'

export interface DeprecationOptions {
  baseUrl: string
  sunset: Date
}

/** Whether a path names an id. Any other text names nothing, and can be longer than the headers that proxies accept. */
const isId = (text: unknown) => /^\d{1,19}$/.test(String(text))

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
  const [list = ''] = deprecation.successor.split('?')
  const successor = baseUrl + (Object.values(params).every(isId) ? fill(deprecation.successor, params) : list)
  const links = `<${baseUrl}/docs>; rel="deprecation"; type="text/html", <${successor}>; rel="successor-version"`
  headers.deprecation = `@${deprecation.since.getTime() / 1000}`
  headers.sunset = sunset.toUTCString()
  headers.link = headers.link ? `${headers.link}, ${links}` : links
}
