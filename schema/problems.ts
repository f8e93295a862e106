import {
  coerceInputValue,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputType,
  getNamedType,
  isEnumType,
  isInputObjectType,
} from 'graphql'
import { suggestionList } from 'graphql/jsutils/suggestionList.js'
import type { z } from 'zod'
import { ApiError, InvalidValue, MAX_MESSAGE } from './errors.js'
import { MAX_INT } from './validation.js'

// What is wrong with the values of a request, all of it in one message. Only refused requests come here.

/** Problems that one message lists. Each may cost a search for what the caller could have meant. */
const MAX_PROBLEMS = 10
/** Characters of a name or a value that a message shows. */
const MAX_SHOWN = 40

/** Shortened, and without characters that hide or reorder others. */
function shownText(text: string): string {
  const points = [...text]
  const isLong = points.length > MAX_SHOWN
  const quoted = JSON.stringify(isLong ? `${points.slice(0, MAX_SHOWN).join('')}…` : text).replace(
    /(?! )[\p{C}\p{Z}]/gu,
    (character) => `\\u{${character.codePointAt(0)?.toString(16)}}`,
  )
  return isLong ? `${quoted} (${points.length} characters)` : quoted
}

type Path = readonly (string | number)[]

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

/** The known names that the caller could have meant, as a question; undefined if there are none. */
export function didYouMean(name: string, known: readonly string[]): string | undefined {
  const likely = suggestionList(name.slice(0, 100), known).slice(0, 2)
  return likely.length > 0 ? `did you mean ${anyOf(likely)}?` : undefined
}

/**
 * Says that names are unknown, and which ones could be meant: one that is like it, or all, which are listed once.
 *
 * @param otherwise what to say where no name is known
 */
export function unknownNames(known: readonly string[], otherwise = ''): (place: string, name: string) => string {
  const all = known.length > 0 ? `known are ${known.join(', ')}` : otherwise
  let isListed = false
  return (place, name) => {
    const hint = didYouMean(name, known) ?? (isListed ? '' : all)
    isListed ||= hint === all
    return `${place} is unknown${hint && `; ${hint}`}`
  }
}

/** `a, b or c` */
export const anyOf = (names: readonly string[]) =>
  names.length < 2 ? names.join() : `${names.slice(0, -1).join(', ')} or ${names.at(-1)}`

/** `input.name`, `ids[3]` */
export const pathText = (path: Path) =>
  path
    .map((key) => (typeof key === 'number' ? `[${key}]` : `.${key}`))
    .join('')
    .replace(/^\./, '')

export const wrongValue = (name: string, value: unknown, rule: string) => `${name} is ${shown(value)}; it ${rule}.`

class Full extends Error {}

/** Collects problems, each a sentence. */
export class Problems {
  readonly #sentences: string[] = []
  #more = false

  add(sentence: string): undefined {
    const ended = /[.?]$/.test(sentence) ? sentence : `${sentence}.`
    // The items of a list can have the same problem.
    if (this.#sentences.includes(ended)) return
    if (this.#sentences.length === MAX_PROBLEMS) throw new Full()
    this.#sentences.push(ended)
  }

  /** Adds what `judge` finds, or the refusal that it throws. */
  collect(judge: () => void): void {
    if (this.#more) return
    try {
      judge()
    } catch (error) {
      if (error instanceof Full) this.#more = true
      else if (error instanceof ApiError && error.code === 'invalid_request')
        this.collect(() => this.add(error.message))
      else throw error
    }
  }

  get sentences(): readonly string[] {
    return this.#sentences
  }

  /** One refusal of all problems; undefined if there are none. */
  get refusal(): ApiError | undefined {
    let message = ''
    let more = this.#more
    for (const sentence of this.#sentences) {
      const longer = message ? `${message} ${sentence}` : sentence
      if (message && longer.length > MAX_MESSAGE - MORE.length) more = true
      else message = longer
    }
    return message ? new ApiError('invalid_request', more ? message + MORE : message) : undefined
  }
}

const MORE = ' There are more problems.'

/** An argument, or a field of an input. */
export type Input = Pick<GraphQLArgument | GraphQLInputField, 'name' | 'type' | 'extensions'>

/** The rules of a value beyond its type. */
export const rulesOf = ({ extensions }: Pick<Input, 'extensions'>): readonly z.ZodType[] =>
  ((extensions['@pothos/plugin-validation'] ?? {}) as { schemas?: z.ZodType[] }).schemas ?? []

/** What a value of this type must be. */
function typeRule(type: GraphQLInputType, value: unknown): string {
  const named = getNamedType(type)
  if (isInputObjectType(named)) return 'must be a JSON object'
  if (isEnumType(named)) return `must be ${anyOf(named.getValues().map(({ name }) => name))}`
  try {
    named.parseValue(value)
  } catch (error) {
    if (error instanceof InvalidValue) return error.message
  }
  const rules: Record<string, string> = {
    String: 'must be a string',
    Int: `must be a whole number from ${-MAX_INT - 1} to ${MAX_INT}`,
    Boolean: 'must be true or false',
  }
  return rules[named.name] ?? 'must have another type'
}

/** The input that a path leads to from an argument. */
function inputAt(argument: Input, path: Path): Input {
  return path.reduce<Input>((input, key) => {
    const named = getNamedType(input.type)
    return (isInputObjectType(named) && named.getFields()[String(key)]) || input
  }, argument)
}

/** What a value that its type refuses must be, and which value could be meant. */
function wrongType({ type, extensions }: Input, name: string, value: unknown): string {
  const issues = rulesOf({ extensions }).map((rule) => rule.safeParse(value).error?.issues[0]?.message)
  // A rule says more than the type, unless it says only that the type is wrong.
  const rule = issues.find((message) => message && !message.startsWith('Invalid input')) ?? typeRule(type, value)
  const named = getNamedType(type)
  const meant =
    isEnumType(named) && typeof value === 'string'
      ? didYouMean(
          value,
          named.getValues().map((one) => one.name),
        )
      : undefined
  return `${wrongValue(name, value, rule)}${meant ? ` D${meant.slice(1)}` : ''}`
}

/**
 * The value of an argument in the form that resolvers take, judged by its type and its rules. What is wrong goes to
 * `problems`.
 *
 * @param nameOf the name of the place that a path from the argument leads to; an empty path is the argument itself
 */
export function judge(argument: Input, value: unknown, nameOf: (path: Path) => string, problems: Problems): void {
  const refused = new Set<string>()
  let unknownField: ReturnType<typeof unknownNames> | undefined
  const coerced = coerceInputValue(value, argument.type, (path, wrong, error) => {
    const field = inputAt(argument, path)
    refused.add(path.join('.'))
    const missing = /^Field "(\w+)" of required type/.exec(error.message)?.[1]
    if (missing) return problems.add(`${nameOf([...path, missing])} is required`)
    const unknown = /^Field "(.*)" is not defined by type/s.exec(error.message)?.[1]
    if (unknown === undefined) return problems.add(wrongType(field, nameOf(path), wrong))
    const type = getNamedType(field.type)
    unknownField ??= unknownNames(isInputObjectType(type) ? Object.keys(type.getFields()) : [])
    problems.add(unknownField(nameOf([...path, shownName(unknown)]), unknown))
  })
  // What is refused by its type, itself or an item in it, is not judged by rules.
  const isRefused = (path: Path) =>
    [...refused].some((at) => `${at}.`.startsWith(path.map((key) => `${key}.`).join('')))
  judgeRules(argument, coerced, nameOf, problems, [], isRefused)
}

/** Judges a coerced value: null where it clears nothing, and what is out of bounds. */
function judgeRules(
  input: Input,
  value: unknown,
  nameOf: (path: Path) => string,
  problems: Problems,
  path: Path,
  isRefused: (path: Path) => boolean,
): void {
  const named = getNamedType(input.type)
  if (value === undefined) return
  if (value === null) {
    if (!input.extensions.nullable) problems.add(`${nameOf(path)} must not be null`)
    return
  }
  if (isInputObjectType(named) && typeof value === 'object')
    for (const field of Object.values(named.getFields()))
      judgeRules(
        field,
        (value as Record<string, unknown>)[field.name],
        nameOf,
        problems,
        [...path, field.name],
        isRefused,
      )
  if (rulesOf(input).length === 0 || isRefused(path)) return
  for (const rule of rulesOf(input)) {
    const { error } = rule.safeParse(value)
    for (const { message } of error?.issues ?? []) problems.add(wrongValue(nameOf(path), value, message))
    if (error) return
  }
}

/** Everything that nulls and rules refuse in the arguments of a field, which have their types already. */
export function refusalOfArguments(args: readonly Input[], values: Record<string, unknown>): ApiError | undefined {
  const problems = new Problems()
  problems.collect(() => {
    for (const arg of args)
      judgeRules(
        arg,
        values[arg.name],
        (path) => pathText([arg.name, ...path]),
        problems,
        [],
        () => false,
      )
  })
  return problems.refusal
}
