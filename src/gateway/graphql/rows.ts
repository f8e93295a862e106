import { type OperationDefinitionNode, valueFromASTUntyped } from 'graphql'
import type { NamedRow } from '../../../schema/kit/context.js'
import type { SelectedField, Selections } from '../../engines/executor/index.js'
import { rowsOf } from '../context/index.js'
import type { Variables } from './cost.js'

/** The rows that the fields of a mutation change, as far as their arguments name them. */
export const rowsOfMutation = (
  selections: Selections,
  operation: OperationDefinitionNode,
  variables: Variables,
): NamedRow[] =>
  [...selections.expand([selections.root(operation)]).values()].flatMap(([field]) => {
    const definition = selections.definitionOf(field as SelectedField)
    const given = (field as SelectedField).node.arguments ?? []
    const args = given.map(({ name, value }) => [name.value, valueFromASTUntyped(value, variables)])
    return definition ? rowsOf(definition, Object.fromEntries(args)) : []
  })
