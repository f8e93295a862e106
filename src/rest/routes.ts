import findMyWay from 'find-my-way'
import { suggestionList } from 'graphql/jsutils/suggestionList.js'
import { ApiError } from '../../schema/errors.js'
import { type Operation, operations } from '../../schema/rest-operations.js'
import type { HttpRequest } from '../http/request.js'
import { routePath } from './sofa.js'

/** The operation that path and method name, and the text in the path's parameters. */
export interface Route {
  operation: Operation
  params: Record<string, string | undefined>
}

/** Ids, which differ from path to path. */
const placeholders = (path: string) => path.replace(/\/(?:\{\w+\}|\d+)/g, '/{id}')

/** Says that no operation has this path, and which one could be meant. */
function unknownPath(path: string): string {
  const templates = new Map(operations.map(({ rest }) => [placeholders(rest.path), rest.path]))
  const [likely] = suggestionList(placeholders(path.slice(0, 100)), [...templates.keys()])
  return `No operation has this path; ${likely ? `did you mean ${templates.get(likely)}?` : 'the reference under /docs lists all.'}`
}

function isEncoded(path: string): boolean {
  try {
    return decodeURIComponent(path) !== ''
  } catch {
    return false
  }
}

/** @param hasPage whether a path that is no operation has a page, which takes GET and HEAD */
export function createRoutes(hasPage: (path: string) => boolean) {
  const router = findMyWay({ caseSensitive: true, ignoreTrailingSlash: false, maxParamLength: 16_384 })
  for (const operation of operations)
    router.on(operation.rest.method, routePath(operation.rest.path), () => {}, operation)

  function find({ method, path }: Pick<HttpRequest, 'method' | 'path'>): Route | undefined {
    const found = path === null ? null : router.find(method as 'GET', path)
    // A trailing slash is another path, not an empty parameter.
    if (!found || !Object.values(found.params).every(Boolean)) return
    return { operation: found.store, params: found.params }
  }

  return {
    find,

    /** Why a request has no operation: its path is malformed or unknown, or takes other methods. */
    refusalOf({ path, head }: HttpRequest): ApiError {
      if (path && !isEncoded(path)) return new ApiError('invalid_request', 'The path is not percent-encoded UTF-8.')
      const all = new Set<string>(operations.map(({ rest }) => rest.method))
      const methods = path && hasPage(path) ? ['GET'] : [...all].filter((method) => find({ method, path }))
      if (methods.length === 0) return new ApiError('not_found', unknownPath(path ?? ''))
      const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
      const message = `This path does not take ${head.method}; it takes ${allow}.`
      return new ApiError('method_not_allowed', message, { allow })
    },
  }
}
