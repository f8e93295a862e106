import {
  type ASTNode,
  type DefinitionNode,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  Kind,
  parse,
  type SelectionNode,
  type SelectionSetNode,
  TokenKind,
  visit,
} from 'graphql'
import { invalidRequest } from '../../../schema/kit/errors.js'
import type { Selections } from '../../engines/executor/index.js'

// The limits of a document. They are checked before its cost is charged and before it is validated, from the document
// alone, in time linear in its size; for merged fields, in its size with all fragments expanded.

const MAX_BYTES = 65_536
const MAX_LINES = 10_000
export const MAX_TOKENS = 2_000
const MAX_FIELDS = 500
const MAX_ALIASES = 100
const MAX_INTROSPECTION_ALIASES = 5
const MAX_REPETITIONS = 10
const MAX_MERGED = 30
const MAX_DEPTH = 10
const MAX_INTROSPECTION_DEPTH = 20

// Free operations cost nothing, also with a key that is banned or has nothing left. So they are small: what such a key
// sends is read no further than it could be free.
export const MAX_FREE_BYTES = 2_048
export const MAX_FREE_TOKENS = 200
export const MAX_FREE_FIELDS = 10

/** The longest query string or body with a free operation: its document, with escapes, and what goes with it. */
export const MAX_FREE_REQUEST = 4 * MAX_FREE_BYTES

/** Errors in longer documents name no lines: each is found by a walk over all lines before it. */
const MAX_LOCATED_LINES = 1_000

/** @throws ApiError invalid_request (a limit), GraphQLError (a syntax error) */
export function parseWithinLimits(source: string, maxTokens: number): DocumentNode {
  const bytes = Buffer.byteLength(source)
  if (bytes > MAX_BYTES) throw invalidRequest(`The document has ${bytes} bytes; at most ${MAX_BYTES} are allowed.`)
  const lines = countLines(source)
  assertAtMost(MAX_LINES, lines, 'lines')
  try {
    return parse(source, { maxTokens, noLocation: lines > MAX_LOCATED_LINES })
  } catch (error) {
    // Refused like any other limit: with 400 for every media type that the client accepts.
    if ((error as Error).message.startsWith('Syntax Error: Document contains more'))
      throw invalidRequest(`The document has more than ${maxTokens} tokens, which is the most allowed.`)
    throw error
  }
}

function countLines(text: string): number {
  let lines = 1
  for (let i = 0; i < text.length; i++) if (text[i] === '\n' || (text[i] === '\r' && text[i + 1] !== '\n')) lines++
  return lines
}

/** Whether the text of a document is short enough to be free. */
export const isShort = (source: string): boolean => Buffer.byteLength(source) <= MAX_FREE_BYTES

/** The tokens of a document. Comments are tokens, too. */
export function countTokens({ loc }: DocumentNode): number {
  let count = 0
  for (let token = loc?.startToken.next; token && token.kind !== TokenKind.EOF; token = token.next) count++
  return count
}

function assertAtMost(max: number, count: number, what: string) {
  if (count > max) throw invalidRequest(`The document has ${count} ${what}; at most ${max} are allowed.`)
}

const introspects = ({ name }: FieldNode) => name.value === '__schema' || name.value === '__type'

/** What a selection set has: fields with its fragments expanded; levels of data, and of introspection with those around it. */
interface Size {
  fields: number
  data: number
  introspection: number
}
const EMPTY: Size = { fields: 0, data: 0, introspection: 0 }

/**
 * Measures operations and fragments.
 *
 * @throws ApiError invalid_request, which names the limit and the figure
 */
export function measureWithinLimits(selections: Selections): ReadonlyMap<DefinitionNode, Size | undefined> {
  const { fragments, document } = selections
  /** Each is measured once, because fragments can expand to exponentially many fields. Undefined while it is measured. */
  const sizes = new Map<DefinitionNode, Size | undefined>()
  const aliases = { all: 0, introspection: 0 }
  /** How many fields have each response key. */
  const keys = new Map<string, number>()
  let fields = 0

  function measureFragment(fragment: FragmentDefinitionNode): Size {
    const known = sizes.get(fragment)
    if (known) return known
    if (sizes.has(fragment))
      throw invalidRequest(`The fragment ${fragment.name.value} contains itself, which would never end.`)
    sizes.set(fragment, undefined)
    const size = measure(fragment.selectionSet, fragment.typeCondition.name.value.startsWith('__'))
    sizes.set(fragment, size)
    return size
  }

  function measureBelow(node: SelectionNode, inIntrospection: boolean): Size {
    if (node.kind !== Kind.FRAGMENT_SPREAD) return measure(node.selectionSet, inIntrospection)
    const fragment = fragments[node.name.value]
    return fragment ? measureFragment(fragment) : EMPTY
  }

  /** Also counts what the document has. */
  function measure(set: SelectionSetNode | undefined, inIntrospection: boolean): Size {
    const size = { ...EMPTY }
    for (const node of set?.selections ?? []) {
      const isField = node.kind === Kind.FIELD
      const isIntrospection = isField && introspects(node)
      if (isField) {
        fields++
        const key = (node.alias ?? node.name).value
        keys.set(key, 1 + (keys.get(key) ?? 0))
        if (node.alias) aliases.all++
        if (node.alias && inIntrospection) aliases.introspection++
      }
      const below = measureBelow(node, inIntrospection || isIntrospection)
      const level = isField ? 1 : 0
      const { data, introspection } = below
      const around = isIntrospection ? Math.max(data, introspection) + 1 : introspection && introspection + level
      size.fields += below.fields + level
      if (!isIntrospection) size.data = Math.max(size.data, data + level)
      size.introspection = Math.max(size.introspection, around)
    }
    return size
  }

  // Also those that another one of the same name hides: validation walks them, too.
  for (const node of document.definitions) if (node.kind === Kind.FRAGMENT_DEFINITION) measureFragment(node)
  const operations = document.definitions.filter((node) => node.kind === Kind.OPERATION_DEFINITION)
  for (const node of operations) sizes.set(node, measure(node.selectionSet, false))
  assertAtMost(MAX_FIELDS, fields, 'fields')
  assertAtMost(MAX_INTROSPECTION_ALIASES, aliases.introspection, 'aliases in introspection')
  assertAtMost(MAX_ALIASES, aliases.all, 'aliases')
  for (const node of operations) {
    const { data, introspection } = sizes.get(node) ?? EMPTY
    assertAtMost(MAX_DEPTH, data, 'levels of fields')
    assertAtMost(MAX_INTROSPECTION_DEPTH, introspection, 'levels of fields in introspection')
  }
  assertFewRepetitions(selections)
  // No more can be merged than are written: most documents need no further look.
  if ([...keys.values()].some((count) => count > MAX_MERGED)) assertFewMerged(selections)
  return sizes
}

function assertFewRepetitions(selections: Selections): void {
  visit(selections.document, {
    SelectionSet(set, _key, parent) {
      // Those of an inline fragment belong to the set around it.
      if ((parent as ASTNode).kind === Kind.INLINE_FRAGMENT) return
      for (const [key, repeated] of selections.expand([{ set, type: undefined }]))
        if (repeated.length > MAX_REPETITIONS)
          throw invalidRequest(
            `One selection has a field ${repeated.length} times; at most ${MAX_REPETITIONS} are allowed. It is ${key}.`,
          )
    },
  })
}

/** Validation compares each field with all that it is merged with, which may be in other selections and in other fragments. */
function assertFewMerged(selections: Selections): void {
  const { document, fragments } = selections
  const spread = new Set<string>()
  visit(document, { FragmentSpread: ({ name }) => void spread.add(name.value) })
  // Whatever their types: validation also compares fields that no object has together.
  const merged = selections.fold((fields): true => {
    for (const [key, equal] of fields) {
      if (equal.length > MAX_MERGED)
        throw invalidRequest(
          `The document selects a field ${equal.length} times at one place of the response; at most ${MAX_MERGED} are allowed, because equal fields are merged. It is ${key}.`,
        )
      merged.of(selections.below(equal).map(({ set }) => ({ set, type: undefined })))
    }
    return true
  })
  for (const node of document.definitions) {
    if (node.kind !== Kind.OPERATION_DEFINITION && node.kind !== Kind.FRAGMENT_DEFINITION) continue
    const name = node.name?.value ?? ''
    const isSpread = fragments[name] === node && spread.has(name)
    if (!isSpread) merged.of([{ set: node.selectionSet, type: undefined }])
  }
}
