import { type DocumentNode, Kind, type OperationDefinitionNode, type SelectionSetNode, TokenKind } from 'graphql'
import type { Selections } from '../execute/selections.js'

// Free operations cost nothing, also with a key that is banned or has nothing left. So they are small: what such a key
// sends is read no further than it could be free.

export const MAX_FREE_BYTES = 2_048
export const MAX_FREE_TOKENS = 200
const MAX_FREE_FIELDS = 10

/** The longest query string or body with a free operation: its document, with escapes, and what goes with it. */
export const MAX_FREE_REQUEST = 4 * MAX_FREE_BYTES

/** Whether the text of a document is short enough. */
export const isShort = (source: string): boolean => Buffer.byteLength(source) <= MAX_FREE_BYTES

/** The tokens of a document. Comments are tokens, too. */
export function countTokens({ loc }: DocumentNode): number {
  let count = 0
  for (let token = loc?.startToken.next; token && token.kind !== TokenKind.EOF; token = token.next) count++
  return count
}

/** Whether an operation has few enough fields, as they are written, with its fragments expanded. */
export function hasFewFields({ fragments }: Selections, { selectionSet }: OperationDefinitionNode): boolean {
  const counted = new Map<string, number>()
  const count = ({ selections }: SelectionSetNode): number => {
    let fields = 0
    for (const node of selections) {
      if (node.kind === Kind.FIELD) fields++
      if (node.kind === Kind.FRAGMENT_SPREAD) fields += countFragment(node.name.value)
      else if (node.selectionSet) fields += count(node.selectionSet)
    }
    return fields
  }
  /** Each once, because fragments can expand to exponentially many fields. */
  const countFragment = (name: string): number => {
    const fragment = fragments[name]
    const fields = counted.get(name) ?? (fragment ? count(fragment.selectionSet) : 0)
    counted.set(name, fields)
    return fields
  }
  return count(selectionSet) <= MAX_FREE_FIELDS
}
