import { type GraphQLObjectType, type GraphQLResolveInfo, getNamedType } from 'graphql'
import { collectSubfields } from 'graphql/execution/collectFields.js'
import type { Context, Model } from './context.js'
import { deletedMeanwhile } from './errors.js'

// Fields that are resolved by one call for all objects of a level: see src/engines/executor/levels.ts.

// biome-ignore lint/suspicious/noExplicitAny: rows and arguments of any type
export type Any = any

/**
 * The options of a field with such a resolver.
 *
 * @param resolveAll returns a value, an error or a promise for each object
 */
export const forAll = (
  resolveAll: (objects: Any[], args: Any, context: Context, info: GraphQLResolveInfo) => unknown[] | Promise<unknown[]>,
) => ({ extensions: { resolvesAll: true as const }, resolve: resolveAll as Any })

/** The row of another model that each row names; null if the column is null. A deleted row carries it: see `deletePet`. */
export const toOne = (model: Model, column: string, from: string) =>
  forAll(async (rows, _args, { reads }, { fieldName }) => {
    if (rows[0][fieldName]) return rows.map((row) => row[fieldName])
    const values = rows.map((row) => row[from])
    const named = values.filter((value) => value !== null)
    const found = (named.length > 0 ? await reads.rows(model, column as never, named) : []).values()
    return values.map((value) => (value === null ? null : (found.next().value ?? deletedMeanwhile())))
  })

/** Whether a field selects another one. */
export function selects(info: GraphQLResolveInfo, field: string): boolean {
  const { schema, fragments, variableValues, returnType, fieldNodes } = info
  const type = getNamedType(returnType) as GraphQLObjectType
  const selected = collectSubfields(schema, fragments, variableValues, type, fieldNodes)
  return [...selected.values()].some(([node]) => node?.name.value === field)
}
