import type { StandardSchemaV1 } from '@pothos/plugin-validation'
import { suggestionList } from 'graphql/jsutils/suggestionList.js'
import { ApiError, invalidRequest, MAX_MESSAGE } from '../errors.js'
import { codePoints } from './rules.js'

// What is wrong with a request in words, all of it in one message. Only refused requests come here.

/** Problems that one message lists. */
const MAX_PROBLEMS = 10
/** Problems that are described, equal ones included: each may cost a search for what the caller could have meant. */
const MAX_DESCRIBED = 100
/** Characters of a name or a value that a message shows. */
const MAX_SHOWN = 40

/** Shortened, and without characters that hide or reorder others. */
function shownText(text: string): string {
  const length = codePoints(text)
  const isLong = length > MAX_SHOWN
  const start = [...text.slice(0, 2 * MAX_SHOWN)].slice(0, MAX_SHOWN).join('')
  const quoted = JSON.stringify(isLong ? `${start}…` : text).replace(
    /(?! )[\p{C}\p{Z}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )
  return isLong ? `${quoted} (${length} characters)` : quoted
}

export type Path = readonly PropertyKey[]

/** A value of a request as messages show it. */
function shown(value: unknown): string {
  if (typeof value === 'string') return shownText(value)
  if (Array.isArray(value))
    return ['an empty list', 'a list of 1 item'][value.length] ?? `a list of ${value.length} items`
  if (value === undefined) return 'missing'
  if (typeof value !== 'object' || value === null) return String(value).slice(0, MAX_SHOWN)
  return value instanceof Date ? value.toISOString() : 'an object'
}

/** A name that the caller has written, in quotes unless it has the form of a name. */
export const shownName = (name: string) => (/^[\w.$-]{1,40}$/.test(name) ? name : shownText(name))

/** What other APIs call something that has other names here. */
const ELSEWHERE: [there: RegExp, here: string[]][] = [
  [/^(order|sort)_?by$/i, ['sort', 'direction']],
  [/^(order|dir)$/, ['direction']],
  [/^(q|query|name)$/, ['search']],
  [/^(per_?page|page_?size|size|limit|first|take)$/i, ['limit', 'first']],
  [/^(includes?|embed|with|populate|relations?)$/i, ['expand']],
  [/^(starting_after|since_id)$/, ['after']],
  // There are no numbers of pages: each page names where the next one begins.
  [/^_?(page(_?(number|num|no|index|token))?|offset|skip|start|from)$/i, ['after', 'cursor']],
]
/** `id[]`, `id[0]`, `filter[status]`, `page[size]`: the name that counts. */
const BRACKETED = /^(?:filters?\[(\w+)\]|page\[(?:(size|limit)|\w+)\]|(\w+)\[\d*\])$/i
/** Here each filter of a list is a name of its own, beside these. */
const NO_FILTERS = ['limit', 'after', 'first', 'last', 'before', 'cursor', 'count', 'sort', 'direction', 'expand']

/** The known names that the caller could have meant. */
export function likelyNames(name: string, known: readonly string[]): string[] {
  const [bracketed, filter, size, repeated] = BRACKETED.exec(name) ?? []
  if (bracketed) return likelyNames(filter ?? size ?? repeated ?? 'page', known)
  const same = known.filter((one) => one.toLowerCase() === name.toLowerCase())
  if (same.length > 0) return same
  const isFilter = known.includes('direction') && /^(where|filters?)$/i.test(name)
  const here = ELSEWHERE.find(([there]) => there.test(name))?.[1] ?? []
  const called = known.filter((one) => (isFilter ? !NO_FILTERS.includes(one) : here.includes(one)))
  return called.length > 0 ? called : suggestionList(name.slice(0, 100), known).slice(0, 2)
}

/** The same as a question; undefined if there are none. */
export function didYouMean(name: string, known: readonly string[]): string | undefined {
  const likely = likelyNames(name, known)
  return likely.length > 0 ? `did you mean ${anyOf(likely)}?` : undefined
}

/** As `didYouMean`; knows the ways of other APIs to say sort and direction in one: `-name`, `name:desc`, `name asc`. */
export function sortMeant(text: string, names: readonly string[]): string | undefined {
  const [, sign, name = text, way] = SORT_AND_DIRECTION.exec(text.slice(0, MAX_SHOWN)) ?? []
  const direction = sign === '-' ? 'desc' : way?.toLowerCase()
  const known = names.find((one) => one.toLowerCase() === name.toLowerCase())
  return known && direction ? `did you mean ${known}, and ${direction} as the direction?` : didYouMean(name, names)
}
const SORT_AND_DIRECTION = /^([-+ ]?)(\w+?)(?:[ :.,_](asc|desc))?$/i

/**
 * Says that names are unknown, and which ones could be meant: one that is like it, or all, which are listed once.
 *
 * @param otherwise what to say where no name is known
 * @param elsewhere says where a name belongs instead
 */
export function unknownNames(
  known: readonly string[],
  otherwise = '',
  elsewhere: (name: string) => string | undefined = () => undefined,
): (place: string, name: string) => string {
  let all: string | undefined
  return (place, name) => {
    let hint = elsewhere(name) ?? didYouMean(name, known)
    if (!hint && all === undefined) hint = all = known.length > 0 ? `known are ${known.join(', ')}` : otherwise
    return `${place} is unknown${hint ? `; ${hint}` : ''}`
  }
}

/** `a, b or c` */
export const anyOf = (names: readonly string[]) =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`

/** `input.name`, `ids[3]` */
export const pathText = (path: Path) =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`))
    .join('')
    .replace(/^\./, '')

export const wrongValue = (name: string, value: unknown, rule: string) => `${name} is ${shown(value)}; it ${rule}.`

/** What rules find wrong in a value, each as a sentence. */
export const wrongIssues = (
  issues: readonly StandardSchemaV1.Issue[],
  value: unknown,
  nameOf: (path: Path) => string,
) =>
  issues.map(({ path = [], message }) => {
    const keys = path.map((part) => (typeof part === 'object' ? part.key : part))
    const wrong = keys.reduce<unknown>((parent, key) => (parent as Record<PropertyKey, unknown>)?.[key], value)
    return wrongValue(nameOf(keys), wrong, message)
  })

/** There is no room for more problems. */
const FULL = new Error()

/** Collects problems, each a sentence. */
export class Problems {
  readonly sentences: string[] = []
  /** Whether there are problems that it has no room for. */
  hasMore = false

  /** @param described counts the problems of a request, if it has several collections of them */
  constructor(private readonly described = { count: 0 }) {}

  add(sentence: string): undefined {
    const ended = /[.?]$/.test(sentence) ? sentence : `${sentence}.`
    // The items of a list can have the same problem.
    const isNew = !this.sentences.includes(ended)
    if (++this.described.count > MAX_DESCRIBED || (isNew && this.sentences.length === MAX_PROBLEMS)) throw FULL
    if (isNew) this.sentences.push(ended)
  }

  /** Returns what `read` returns. Adds what it finds, or the refusal that it throws. */
  collect<T>(read: () => T): T | undefined {
    if (this.hasMore) return undefined
    try {
      return read()
    } catch (error) {
      if (error instanceof ApiError && error.code === 'invalid_request')
        return this.collect(() => this.add(error.message))
      if (error !== FULL) throw error
      this.hasMore = true
    }
  }

  /** One refusal of all problems; undefined if there are none. */
  get refusal(): ApiError | undefined {
    const [first, ...others] = this.sentences
    if (first === undefined) return undefined
    let message = first
    let more = this.hasMore
    for (const sentence of others) {
      if (message.length + 1 + sentence.length > MAX_MESSAGE - MORE.length) more = true
      else message += ` ${sentence}`
    }
    return invalidRequest(more ? message + MORE : message)
  }
}

const MORE = ' There are more problems.'
