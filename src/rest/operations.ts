import { type GraphQLField, getNullableType, isListType } from 'graphql'
import { restSchema } from '../../schema/index.js'
import type { Rest } from '../../schema/plugin.js'

/** A root field with a REST face. */
export interface Operation {
  /** The field's name. */
  name: string
  /** What generated clients call it: listPets, getPet. A mutation's name has its verb already. */
  operationId: string
  type: 'Query' | 'Mutation'
  field: GraphQLField<unknown, unknown>
  rest: Rest
}

function operationId(type: Operation['type'], { name, type: result }: GraphQLField<unknown, unknown>) {
  if (type === 'Mutation') return name
  return (isListType(getNullableType(result)) ? 'list' : 'get') + name.charAt(0).toUpperCase() + name.slice(1)
}

/** Every operation of the service, in the order of the schema. Whatever REST is, derives from this list. */
export const operations: Operation[] = [restSchema.getQueryType(), restSchema.getMutationType()].flatMap((type) =>
  Object.values(type?.getFields() ?? {}).flatMap((field) => {
    const { rest } = field.extensions
    const root = type?.name as Operation['type']
    return rest ? [{ name: field.name, operationId: operationId(root, field), type: root, field, rest }] : []
  }),
)

/** What a body may be: RFC 8259, and RFC 7396 for changes. */
export const MEDIA_TYPES: Partial<Record<Rest['method'], string[]>> = {
  POST: ['application/json'],
  PATCH: ['application/json', 'application/merge-patch+json'],
}

/** A path template filled in: `/pets/{id}` and `{ id: 7 }` make `/pets/7`. */
export const fill = (template: string, values: Record<string, unknown>) =>
  template.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(values[name])))
