import { type DocumentNode, type FieldNode, Kind, type SelectionSetNode } from 'graphql'
import { DocumentLimitError, expand, fragmentsOf } from './selection.js'

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

/** @throws ApiError invalid_request, which names the limit and the figure */
export function assertWithinLimits(document: DocumentNode): void {
  const fragments = fragmentsOf(document)
  const sets: SelectionSetNode[] = []
  const aliases = { all: 0, introspection: 0 }
  let fields = 0

  function count(set: SelectionSetNode, inIntrospection: boolean) {
    for (const node of set.selections) {
      if (node.kind === Kind.FRAGMENT_SPREAD) continue
      const isField = node.kind === Kind.FIELD
      if (isField) {
        fields++
        if (node.alias) aliases.all++
        if (node.alias && inIntrospection) aliases.introspection++
        if (node.selectionSet) sets.push(node.selectionSet)
      }
      if (node.selectionSet) count(node.selectionSet, inIntrospection || (isField && introspects(node)))
    }
  }

  const depths = new Map<string, Depth | undefined>()
  function depthOfFragment(name: string): Depth {
    const fragment = fragments.get(name)
    const known = depths.get(name)
    if (known || !fragment) return known ?? { data: 0, introspection: 0 }
    if (depths.has(name)) throw new DocumentLimitError(`The fragment ${name} contains itself, which would never end.`)
    depths.set(name, undefined)
    const depth = depthOf(fragment.selectionSet)
    depths.set(name, depth)
    return depth
  }

  function depthOf({ selections }: SelectionSetNode): Depth {
    const deepest = { data: 0, introspection: 0 }
    for (const node of selections) {
      const { data, introspection } =
        node.kind === Kind.FRAGMENT_SPREAD
          ? depthOfFragment(node.name.value)
          : node.selectionSet
            ? depthOf(node.selectionSet)
            : { data: 0, introspection: 0 }
      const level = node.kind === Kind.FIELD ? 1 : 0
      const isIntrospection = node.kind === Kind.FIELD && introspects(node)
      const around = isIntrospection ? Math.max(data, introspection) + 1 : introspection && introspection + level
      if (!isIntrospection) deepest.data = Math.max(deepest.data, data + level)
      deepest.introspection = Math.max(deepest.introspection, around)
    }
    return deepest
  }

  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION && definition.kind !== Kind.FRAGMENT_DEFINITION) continue
    const isFragment = definition.kind === Kind.FRAGMENT_DEFINITION
    if (isFragment) depthOfFragment(definition.name.value)
    sets.push(definition.selectionSet)
    count(definition.selectionSet, isFragment && definition.typeCondition.name.value.startsWith('__'))
  }
  assertAtMost(MAX_FIELDS, fields, 'fields')
  assertAtMost(MAX_INTROSPECTION_ALIASES, aliases.introspection, 'aliases in introspection')
  assertAtMost(MAX_ALIASES, aliases.all, 'aliases')
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue
    const { data, introspection } = depthOf(definition.selectionSet)
    assertAtMost(MAX_DEPTH, data, 'levels of fields')
    assertAtMost(MAX_INTROSPECTION_DEPTH, introspection, 'levels of fields in introspection')
  }
  for (const set of sets)
    for (const [key, repeated] of expand([{ set, type: undefined }], fragments, () => true))
      if (repeated.length > MAX_REPETITIONS)
        throw new DocumentLimitError(
          `One selection has a field ${repeated.length} times; at most ${MAX_REPETITIONS} are allowed. It is ${key}.`,
        )
}
