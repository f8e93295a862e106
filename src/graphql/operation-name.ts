import {
  type DocumentNode,
  type FragmentDefinitionNode,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  type SelectionSetNode,
} from 'graphql'
import { operations } from '../../schema/rest-operations.js'

const names = new Map(operations.map(({ name, operationId }) => [name, operationId]))
for (const field of ['__schema', '__type']) names.set(field, 'introspection')

/**
 * Names an operation in logs and metrics, by the operationIds of its root fields in alphabetical order. The client's own
 * name for it is not used: it can be long and have any value.
 */
export function operationName(schema: GraphQLSchema, document: DocumentNode, operation: OperationDefinitionNode) {
  const fields = schema.getRootType(operation.operation)?.getFields()
  const fragments = new Map<string, FragmentDefinitionNode>()
  for (const node of document.definitions)
    if (node.kind === Kind.FRAGMENT_DEFINITION) fragments.set(node.name.value, node)
  const found = new Set<string>()
  const collect = ({ selections }: SelectionSetNode) => {
    for (const node of selections) {
      if (node.kind === Kind.FIELD) {
        const field = node.name.value
        const name = names.get(field) ?? fields?.[field]?.name
        if (name) found.add(name)
      } else if (node.kind === Kind.INLINE_FRAGMENT) collect(node.selectionSet)
      else {
        const fragment = fragments.get(node.name.value)
        // Each fragment once, even if it is spread several times or in a cycle.
        if (fragments.delete(node.name.value) && fragment) collect(fragment.selectionSet)
      }
    }
  }
  collect(operation.selectionSet)
  return [...found].sort().join(',') || undefined
}
