import type { Rest } from '../../schema/plugin.js'
import { fill, type Operation, operations } from '../../schema/rest-operations.js'
import type { Route } from './routes.js'

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
  const setters = new Map<Operation, ReturnType<typeof createDeprecation>>()
  for (const operation of operations) {
    const { deprecation } = operation.rest
    if (deprecation) setters.set(operation, createDeprecation(deprecation, options))
  }
  return (headers: Record<string, string>, route: Route | undefined): void => {
    if (route) setters.get(route.operation)?.(headers, route.params)
  }
}
