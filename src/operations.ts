import type { GraphQLField } from 'graphql'
import { restSchema } from '../schema/index.js'
import type { Rest } from '../schema/plugin.js'

/** A root field with a REST face. */
export interface Operation {
  /** The field's name, which is the operationId too. */
  name: string
  type: 'Query' | 'Mutation'
  field: GraphQLField<unknown, unknown>
  rest: Rest
}

/** Every operation of the service, in the order of the schema. Whatever REST is, derives from this list. */
export const operations: Operation[] = [restSchema.getQueryType(), restSchema.getMutationType()].flatMap((type) =>
  Object.values(type?.getFields() ?? {}).flatMap((field) => {
    const { rest } = field.extensions
    return rest ? [{ name: field.name, type: type?.name as Operation['type'], field, rest }] : []
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
