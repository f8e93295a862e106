import type { DocumentNode, ExecutionArgs } from 'graphql'
import { createSofa, createSofaRouter } from 'sofa-api'
import { operations, restSchema } from '../../../schema/index.js'
import { MAX_DATE_TIME, MAX_ID } from '../../../schema/kit/input/scalars.js'
import type { Operation } from '../../../schema/kit/operations.js'

type SofaConfig = Parameters<typeof createSofa>[0]

/** An OpenAPI path template in the syntax of SOFA's and find-my-way's routers: `/pets/{petId}` is `/pets/:petId`. */
export const routePath = (template: string) => template.replace(/\{(\w+)\}/g, ':$1')

const routes = Object.fromEntries(
  operations.map(({ type, name, rest: { method, path, tag, status } }) => [
    `${type}.${name}`,
    { method, path: routePath(path), tags: [tag.name], responseStatus: status },
  ]),
) as SofaConfig['routes']

// Getters, because SOFA writes descriptions into the very objects it finds here: each reading gives a new one.
const customScalars = {
  get Int64() {
    return { type: 'integer', format: 'int64', minimum: 1, maximum: MAX_ID }
  },
  get DateTime() {
    return { type: 'string', format: 'date-time', maxLength: MAX_DATE_TIME }
  },
}

/**
 * SOFA's router over the REST schema: a route in `__routes` for each operation, and in `openAPIDocument` its own
 * description of them. It also has webhook routes, which nothing here may serve or describe.
 */
export const createRouter = (execute?: (args: ExecutionArgs) => unknown) =>
  createSofaRouter(
    createSofa({ schema: restSchema, basePath: '/', routes, customScalars, ...({ execute } as Partial<SofaConfig>) }),
  )

/** The GraphQL document that SOFA prepared for each operation. Its handler is asked once, and never by a request. */
async function askSofa(): Promise<Map<Operation, DocumentNode>> {
  let prepared: DocumentNode | undefined
  const router = createRouter((args) => {
    prepared = args.document
    return { data: {} }
  })
  const documents = new Map<Operation, DocumentNode>()
  for (const operation of operations) {
    const { method, path } = operation.rest
    const route = router.__routes.find((route) => route.method === method && route.path === routePath(path))
    const handler = route?.handler as ((request: object, context: object) => unknown) | undefined
    prepared = undefined
    await handler?.({ url: '', body: null, params: {} }, {})
    if (!prepared) throw new Error(`SOFA prepared no document for ${operation.name}`)
    documents.set(operation, prepared)
  }
  return documents
}

let documents: ReturnType<typeof askSofa> | undefined

/** The documents depend on the schema alone, so all gateways of a process share them. */
export function readDocuments(): Promise<ReadonlyMap<Operation, DocumentNode>> {
  documents ??= askSofa()
  return documents
}
