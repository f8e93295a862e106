import { getNamedType, type OperationDefinitionNode, valueFromASTUntyped } from 'graphql'
import type { Values } from '../../../schema/kit/input/values.js'
import type { SelectedField, Selections } from '../../engines/executor/index.js'
import type { NamedRow } from '../context/index.js'
import type { Variables } from './cost.js'

/** The rows that the fields of a mutation change, as far as their arguments name them. */
export const rowsOf = (selections: Selections, operation: OperationDefinitionNode, variables: Variables): NamedRow[] =>
  [...selections.expand([selections.root(operation)]).values()].flatMap(([field]) =>
    rowsOfField(selections, field as SelectedField, variables),
  )

function rowsOfField(selections: Selections, field: SelectedField, variables: Variables): NamedRow[] {
  const definition = selections.definitionOf(field)
  if (!definition) return []
  const { args, extensions, type } = definition
  const ids = args.flatMap(({ name, extensions: { batch } }) => {
    const key = batch?.key
    if (name !== extensions.rest?.idArgument && key === undefined) return []
    const given = field.node.arguments?.find((argument) => argument.name.value === name)?.value
    const value: unknown = given && valueFromASTUntyped(given, variables)
    return key === undefined ? value : [value].flat().map((item) => (item as Values | null | undefined)?.[key])
  })
  // Variables are not judged yet: they can be anything.
  const isId = (id: unknown): id is NamedRow[1] => typeof id === 'number' || typeof id === 'bigint'
  return ids.filter(isId).map((id) => [getNamedType(type).name, id])
}
