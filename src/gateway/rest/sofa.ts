import { buildOperationNodeForField } from '@graphql-tools/utils'
import { type DocumentNode, type GraphQLField, getNamedType, Kind, type OperationTypeNode } from 'graphql'
import { createSofa, createSofaRouter } from 'sofa-api'
import { expandedSchema, operations, restSchema } from '../../../schema/index.js'
import { MAX_DATE_TIME, MAX_ID } from '../../../schema/kit/input/scalars.js'
import { fieldsOf, type Operation, type Tree, treeOf } from '../../../schema/kit/operations.js'

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

/** Fields, each `true` or with the fields to select below it. */
interface Selected {
  [name: string]: Selected | true
}

/** Every field that REST has of a type, and of those that the tree leads to. */
function select(type: string, tree: Tree): Selected {
  const selected: Selected = {}
  for (const name of Object.keys(fieldsOf(restSchema, type))) selected[name] = true
  for (const [name, below] of Object.entries(tree)) {
    const field = fieldsOf(expandedSchema, type)[name] as GraphQLField<unknown, unknown>
    selected[name] = select(getNamedType(field.type).name, below)
  }
  return selected
}

/**
 * The GraphQL document that SOFA executes for an operation: every field of what it returns. SOFA keeps it in the handler of
 * its route, so it is built here the same way, by the function and with the options that SOFA calls it with.
 *
 * @param expand what it also selects, which SOFA does not know: some of `operation.expansions`
 */
export function documentOf({ type, name, field }: Operation, expand: readonly string[] = []): DocumentNode {
  const selection =
    expand.length > 0
      ? { schema: expandedSchema, models: [], selectedFields: select(getNamedType(field.type).name, treeOf(expand)) }
      : { schema: sofa.schema, models: sofa.models, circularReferenceDepth: sofa.depthLimit }
  const kind = type.toLowerCase() as OperationTypeNode
  const definition = buildOperationNodeForField({ kind, field: name, ignore: sofa.ignore, ...selection })
  return { kind: Kind.DOCUMENT, definitions: [definition] }
}
