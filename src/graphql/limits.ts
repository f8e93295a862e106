import {
  type DefinitionNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  type OperationDefinitionNode,
  type SelectionNode,
  type SelectionSetNode,
} from 'graphql'
import { DocumentLimitError, type Selections } from '../execute/selections.js'

// The limits of a document. They are checked before its cost is charged and before it is validated, from the document
// alone, in time linear in its size.

export const MAX_BYTES = 65_536
export const MAX_TOKENS = 2_000
const MAX_FIELDS = 500
const MAX_ALIASES = 100
const MAX_INTROSPECTION_ALIASES = 5
const MAX_REPETITIONS = 10
const MAX_DEPTH = 10
const MAX_INTROSPECTION_DEPTH = 20

function assertAtMost(max: number, count: number, what: string) {
  if (count > max) throw new DocumentLimitError(`The document has ${count} ${what}; at most ${max} are allowed.`)
}

const introspects = ({ name }: FieldNode) => name.value === '__schema' || name.value === '__type'

/** Levels of fields: of data, and of introspection with the fields around it. */
interface Depth {
  data: number
  introspection: number
}
const NONE: Depth = { data: 0, introspection: 0 }

/** @throws ApiError invalid_request, which names the limit and the figure */
export function assertWithinLimits(selections: Selections): void {
  const { fragments, document } = selections
  /** The selection sets of each definition but those of inline fragments, which belong to others. */
  const sets = new Map<DefinitionNode, SelectionSetNode[]>()
  const aliases = { all: 0, introspection: 0 }
  let fields = 0

  const depths = new Map<FragmentDefinitionNode, Depth | undefined>()
  function measureFragment(fragment: FragmentDefinitionNode): Depth {
    const known = depths.get(fragment)
    if (known) return known
    if (depths.has(fragment))
      throw new DocumentLimitError(`The fragment ${fragment.name.value} contains itself, which would never end.`)
    depths.set(fragment, undefined)
    const depth = measureDefinition(fragment, fragment.typeCondition.name.value.startsWith('__'))
    depths.set(fragment, depth)
    return depth
  }

  function measureDefinition(node: OperationDefinitionNode | FragmentDefinitionNode, inIntrospection: boolean): Depth {
    const own = [node.selectionSet]
    sets.set(node, own)
    return measure(node.selectionSet, inIntrospection, own)
  }

  function measureBelow(node: SelectionNode, inIntrospection: boolean, own: SelectionSetNode[]): Depth {
    if (node.kind !== Kind.FRAGMENT_SPREAD)
      return node.selectionSet ? measure(node.selectionSet, inIntrospection, own) : NONE
    const fragment = fragments[node.name.value]
    return fragment ? measureFragment(fragment) : NONE
  }

  /** Returns the depth of a selection, and counts what it has. */
  function measure(set: SelectionSetNode, inIntrospection: boolean, own: SelectionSetNode[]): Depth {
    const deepest = { ...NONE }
    for (const node of set.selections) {
      const isField = node.kind === Kind.FIELD
      const isIntrospection = isField && introspects(node)
      if (isField) {
        fields++
        if (node.alias) aliases.all++
        if (node.alias && inIntrospection) aliases.introspection++
        if (node.selectionSet) own.push(node.selectionSet)
      }
      const { data, introspection } = measureBelow(node, inIntrospection || isIntrospection, own)
      const level = isField ? 1 : 0
      const around = isIntrospection ? Math.max(data, introspection) + 1 : introspection && introspection + level
      if (!isIntrospection) deepest.data = Math.max(deepest.data, data + level)
      deepest.introspection = Math.max(deepest.introspection, around)
    }
    return deepest
  }

  // Also those that another one of the same name hides: validation walks them, too.
  const defined = document.definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION)
  for (const fragment of [...Object.values(fragments), ...defined]) measureFragment(fragment)
  const operations: Depth[] = []
  for (const node of document.definitions)
    if (node.kind === Kind.OPERATION_DEFINITION) operations.push(measureDefinition(node, false))
  assertAtMost(MAX_FIELDS, fields, 'fields')
  assertAtMost(MAX_INTROSPECTION_ALIASES, aliases.introspection, 'aliases in introspection')
  assertAtMost(MAX_ALIASES, aliases.all, 'aliases')
  for (const { data, introspection } of operations) {
    assertAtMost(MAX_DEPTH, data, 'levels of fields')
    assertAtMost(MAX_INTROSPECTION_DEPTH, introspection, 'levels of fields in introspection')
  }
  for (const set of document.definitions.flatMap((node) => sets.get(node) ?? []))
    for (const [key, repeated] of selections.expand([{ set, type: undefined }]))
      if (repeated.length > MAX_REPETITIONS)
        throw new DocumentLimitError(
          `One selection has a field ${repeated.length} times; at most ${MAX_REPETITIONS} are allowed. It is ${key}.`,
        )
}
