import findMyWay from 'find-my-way'
import { suggestionList } from 'graphql/jsutils/suggestionList.js'
import { operations } from '../../../schema/index.js'
import { attempt } from '../../../schema/kit/attempt.js'
import { ApiError, invalidRequest } from '../../../schema/kit/errors.js'
import { type HttpRequest, MAX_HEAD, methodNotAllowed } from '../http/index.js'
import type { Route } from '../reply/index.js'
import { routePath } from './sofa.js'

/** Ids, which differ from path to path. */
const placeholders = (path: string) => path.replace(/\/(?:\{\w+\}|\d+)/g, '/{id}')

const reads = operations.filter(({ rest }) => rest.method === 'GET')

/** What belongs to a row has a path of its own: `/pets/1/orders` could be `/store/orders?petId=1`. */
function belowRow(path: string): string | undefined {
  const [, parent, id, child] = /^(.*)\/(\d{1,16})\/(\w+)$/.exec(path) ?? []
  const key = reads.find(({ rest }) => rest.path.startsWith(`${parent}/{`))?.pathArguments[0]?.name
  const own = reads.filter(({ rest }) => rest.path.replace(/\/\{\w+\}$/, '').endsWith(`/${child}`))
  const one = own.find(({ pathArguments }) => pathArguments.some(({ name }) => name === key))
  const list = own.find(({ queryArguments }) => queryArguments.some(({ name }) => name === key))
  return one ? one.rest.path.replace(/\{\w+\}/, String(id)) : list && `${list.rest.path}?${key}=${id}`
}

/** Paths without parameters. */
const concrete = new Set<string | null>(operations.flatMap(({ rest }) => (rest.path.includes('{') ? [] : rest.path)))

/** Says that no operation has this path, and which one could be meant. */
function unknownPath(path: string, baseUrl: string): string {
  const below = belowRow(path)
  if (below) return `No operation has this path; did you mean ${below}?`
  const templates = new Map(operations.map(({ rest }) => [placeholders(rest.path), rest.path]))
  const wanted = placeholders(path.slice(0, 100))
  const ending = [...templates.keys()].find((template) => template.endsWith(wanted) && wanted.length > 1)
  const likely = ending ?? suggestionList(wanted, [...templates.keys()])[0]
  return `No operation has this path; ${likely ? `did you mean ${templates.get(likely)}?` : `the reference at ${baseUrl}/docs lists all.`}`
}

/** @param hasPage whether a path that is no operation has a page, which takes GET and HEAD */
export function createRoutes(hasPage: (path: string) => boolean, baseUrl: string) {
  const router = findMyWay({ caseSensitive: true, ignoreTrailingSlash: false, maxParamLength: MAX_HEAD })
  for (const operation of operations)
    router.on(operation.rest.method, routePath(operation.rest.path), () => {}, operation)

  function find({ method, path }: Pick<HttpRequest, 'method' | 'path'>): Route | undefined {
    const found = path === null ? null : router.find(method as 'GET', path)
    // A trailing slash is another path, not an empty parameter; nor is a path of its own, such as /pets/batch, an id.
    if (!found || !Object.values(found.params).every(Boolean)) return
    if (path !== found.store.rest.path && concrete.has(path)) return
    return { operation: found.store, params: found.params }
  }

  return {
    find,

    /** Why a request has no operation: its path is malformed or unknown, or takes other methods. */
    refusalOf({ path, head }: HttpRequest): ApiError {
      if (path && attempt(() => decodeURIComponent(path)) === undefined)
        return invalidRequest('The path must be percent-encoded UTF-8: %25 for a %.')
      const all = new Set<string>(operations.map(({ rest }) => rest.method))
      const methods = path && hasPage(path) ? ['GET'] : [...all].filter((method) => find({ method, path }))
      if (methods.length === 0) return new ApiError('not_found', unknownPath(path ?? '', baseUrl))
      const allow = methods.flatMap((method) => (method === 'GET' ? ['GET', 'HEAD'] : [method])).join(', ')
      return methodNotAllowed(head.method, allow)
    },
  }
}
