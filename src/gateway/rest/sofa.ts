import { buildOperationNodeForField } from '@graphql-tools/utils'
import { type DocumentNode, Kind, type OperationTypeNode } from 'graphql'
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

const sofa = createSofa({ schema: restSchema, basePath: '/', routes, customScalars })

/**
 * SOFA's description of the operations, in its `paths`. It also describes webhooks, which the service does not have. Each
 * call returns a new one, because the OpenAPI document is completed in it.
 */
export const createSofaDocument = () => createSofaRouter(sofa).openAPIDocument

/**
 * The GraphQL document that SOFA executes for an operation: every field of what it returns. SOFA keeps it in the handler of
 * its route, so it is built here the same way, by the function and with the options that SOFA calls it with.
 */
export function documentOf({ type, name }: Operation): DocumentNode {
  const definition = buildOperationNodeForField({
    kind: type.toLowerCase() as OperationTypeNode,
    schema: sofa.schema,
    field: name,
    models: sofa.models,
    ignore: sofa.ignore,
    circularReferenceDepth: sofa.depthLimit,
  })
  return { kind: Kind.DOCUMENT, definitions: [definition] }
}
