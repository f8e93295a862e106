import { type GraphQLField, getNamedType } from 'graphql'
import type { NamedRow } from '../../../schema/kit/context.js'
import type { Values } from '../../../schema/kit/input/values.js'

/**
 * The rows that a field changes, as far as its arguments name them.
 *
 * @param args not judged yet: they can be anything
 */
export function rowsOf({ type, args: known, extensions }: GraphQLField<unknown, unknown>, args: Values): NamedRow[] {
  const isId = (id: unknown): id is NamedRow[1] => typeof id === 'number' || typeof id === 'bigint'
  const rows = (model: string, ids: unknown[]) => ids.filter(isId).map((id): NamedRow => [model, id])
  const inItems = (argument: string, key: string) =>
    [args[argument]].flat().map((item) => (item as Values | null | undefined)?.[key])
  return known.flatMap(({ name, extensions: { batch, takes } }) => {
    if (name === extensions.rest?.idArgument) return rows(getNamedType(type).name, [args[name]])
    if (batch?.key !== undefined) return rows(getNamedType(type).name, inItems(name, batch.key))
    return takes && args[name] === true ? rows(takes.model, inItems('input', takes.key)) : []
  })
}
