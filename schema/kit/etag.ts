import { hash } from 'node:crypto'

// Entity tags (RFC 9110, section 8.8.3). The tag of a row is computed from its REST representation alone, so it is equal
// on both surfaces and on every gateway, and changes with every change of the row, also from Studio or SQL.

/** @param representation the JSON text that REST returns */
export const createEtag = (representation: string) => `"${hash('sha256', representation, 'base64url').slice(0, 27)}"`

export type EntityTags = '*' | string[]

export const MALFORMED = 'must be * or entity tags in double quotes, separated by commas, as ETag has them'

/** The value of If-Match or If-None-Match: entity tags in their quotes, or `*` for any. Undefined if it is malformed. */
export function parseEntityTags(text: string): EntityTags | undefined {
  if (text.trim() === '*') return '*'
  const tags: string[] = []
  const rest = text.replaceAll(/(?:W\/)?"[!#-~\x80-\xff]*"(?=[\t ]*(?:,|$))/g, (tag) => {
    tags.push(tag)
    return ''
  })
  return tags.length > 0 && !/[^\t ,]/.test(rest) ? tags : undefined
}

/** The comparison of If-Match: a weak tag matches nothing. */
export const matchesStrongly = (tags: EntityTags, etag: string) => tags === '*' || tags.includes(etag)

/** The comparison of If-None-Match. */
export const matchesWeakly = (tags: EntityTags, etag: string) =>
  tags === '*' || tags.some((tag) => tag.replace(/^W\//, '') === etag)
