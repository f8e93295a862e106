import {
  coerceInputValue,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLNamedInputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
} from 'graphql'
import type { z } from 'zod'
import { ApiError, InvalidValue } from '../errors.js'
import { anyOf, didYouMean, type Path, Problems, pathText, shownName, unknownNames, wrongValue } from './problems.js'
import { MAX_INT } from './rules.js'

// Reads the values of a request: arguments of REST, bodies, and variables of GraphQL. A request is read once, and refused
// at the first wrong value. Only then is it read again, to say what is wrong with all of them.

/** An argument, or a field of an input. */
export type Input = Pick<GraphQLArgument | GraphQLInputField, 'name' | 'type' | 'extensions'>
export type Values = Record<string, unknown>

/** The rules of a value beyond its type. Pothos applies them before it calls a resolver. */
export const rulesOf = ({ extensions }: Pick<Input, 'extensions'>): readonly z.ZodType[] =>
  ((extensions['@pothos/plugin-validation'] ?? {}) as { schemas?: z.ZodType[] }).schemas ?? []

/** Some value is wrong. */
export const REFUSED = new ApiError('invalid_request')

/** Adds a problem to those of a request that is explained. A request that is read ends with it. */
export function refuse(problems?: Problems, sentence?: () => string): undefined {
  if (!problems || !sentence) throw REFUSED
  return problems.add(sentence())
}

const refuseFirst = () => refuse()
// Suggestions of graphql-js would take a search for each unknown name.
const HIDE_SUGGESTIONS = true

/**
 * The value of an input in the form that resolvers take.
 *
 * @param nameOf the name of the place that a path from the input leads to; an empty path is the input itself
 * @param problems collects what is wrong by type and by rule, instead of the first error
 * @throws REFUSED (its type refuses the value)
 */
export function readValue(input: Input, value: unknown, nameOf: (path: Path) => string, problems?: Problems): unknown {
  const wrongLength = Array.isArray(value) && wrongLengthOf(input, value)
  if (wrongLength) return refuse(problems, () => wrongValue(nameOf([]), value, wrongLength))
  if (!problems) return coerceInputValue(value, input.type, refuseFirst, HIDE_SUGGESTIONS)
  const coerced = coerceInputValue(value, input.type, wrongTypes(input, nameOf, problems), HIDE_SUGGESTIONS)
  judge(input, coerced, nameOf, problems)
  return coerced
}

/** What is wrong with the number of items of a list. None of them is read. */
function wrongLengthOf(input: Input, items: unknown[]): string | undefined {
  if (!isListType(getNullableType(input.type))) return
  const issues = rulesOf(input).flatMap((rule) => rule.safeParse(items).error?.issues ?? [])
  return issues.find(({ path }) => path.length === 0)?.message
}

// How graphql-js begins its messages.
const MISSING = /^Field "(\w+)" of required type/
const UNKNOWN = /^Field "(.*)" is not defined by type "\w+"\.$/s

/** Adds a problem for each error of graphql-js. */
function wrongTypes(input: Input, nameOf: (path: Path) => string, problems: Problems) {
  let unknownField: ReturnType<typeof unknownNames> | undefined
  return (path: Path, value: unknown, { message }: Error) => {
    const field = inputAt(input, path)
    const [, unknown] = UNKNOWN.exec(message) ?? []
    if (unknown === undefined) {
      const [, missing] = MISSING.exec(message) ?? []
      return problems.add(missing ? `${nameOf([...path, missing])} is required` : wrongType(field, nameOf(path), value))
    }
    const type = getNamedType(field.type)
    unknownField ??= unknownNames(isInputObjectType(type) ? Object.keys(type.getFields()) : [])
    problems.add(unknownField(nameOf([...path, shownName(unknown)]), unknown))
  }
}

/** The input that a path leads to. */
const inputAt = (input: Input, path: Path) =>
  path.reduce<Input>((parent, key) => {
    const type = getNamedType(parent.type)
    return (isInputObjectType(type) && type.getFields()[String(key)]) || parent
  }, input)

/** What a value that its type refuses must be, and which value could be meant. */
function wrongType(input: Input, name: string, value: unknown): string {
  const type = getNamedType(input.type)
  const names = isEnumType(type) ? type.getValues().map((one) => one.name) : []
  const issues = rulesOf(input).map((rule) => rule.safeParse(value).error?.issues[0]?.message)
  // A rule says more than the type, unless it says only that the type is wrong.
  const rule = issues.find((message) => message && !message.startsWith('Invalid input')) ?? typeRule(type, names, value)
  const meant = typeof value === 'string' ? didYouMean(value, names) : undefined
  return `${wrongValue(name, value, rule)}${meant ? ` D${meant.slice(1)}` : ''}`
}

const typeRules: Record<string, string> = {
  String: 'must be a string',
  Int: `must be a whole number from ${-MAX_INT - 1} to ${MAX_INT}`,
  Boolean: 'must be true or false',
}

/** What a value of this type must be. */
function typeRule(type: GraphQLNamedInputType, names: string[], value: unknown): string {
  if (isInputObjectType(type)) return 'must be a JSON object'
  if (isEnumType(type)) return `must be ${anyOf(names)}`
  try {
    type.parseValue(value)
  } catch (error) {
    if (error instanceof InvalidValue) return error.message
  }
  return typeRules[type.name] ?? 'must have another type'
}

/** Judges a coerced value: null where it clears nothing, and what a rule refuses. */
function judge(
  input: Input,
  value: unknown,
  nameOf: (path: Path) => string,
  problems: Problems,
  path: Path = [],
): void {
  // It was not sent, or its type refuses it.
  if (value === undefined) return
  if (value === null) {
    if (!input.extensions.nullable) problems.add(`${nameOf(path)} must not be null`)
    return
  }
  const type = getNamedType(input.type)
  if (isInputObjectType(type))
    for (const [i, item] of (Array.isArray(value) ? value : [value]).entries())
      for (const field of Object.values(type.getFields()))
        judge(field, item?.[field.name], nameOf, problems, [...path, ...(item === value ? [] : [i]), field.name])
  // A list with an item that its type refuses is judged by no rule.
  if (Array.isArray(value) && value.includes(undefined)) return
  for (const rule of rulesOf(input)) {
    const { error } = rule.safeParse(value)
    for (const { message, path: below } of error?.issues ?? []) {
      const at = below.map((key) => (typeof key === 'symbol' ? String(key) : key))
      const wrong = at.reduce<unknown>((parent, key) => (parent as Values)?.[key], value)
      problems.add(wrongValue(nameOf([...path, ...at]), wrong, message))
    }
    if (error) return
  }
}

/** Whether a value is null or has a null in it. Items of lists that are no objects are judged by their types alone. */
function hasNull(value: unknown): boolean {
  if (typeof value !== 'object') return false
  if (Array.isArray(value)) return value.some((item) => item !== null && hasNull(item))
  for (const name in value) if (hasNull((value as Values)[name])) return true
  return value === null
}

/**
 * The arguments of a field without those whose null counts as absent. A null that clears nothing is refused, also in
 * literals of a document, which are not read here. The arguments have their types already, and only those with a null are
 * judged.
 *
 * @param isQuery a null argument counts as absent: clients send it for what is not chosen
 * @throws ApiError invalid_request (also what rules refuse)
 */
export function withoutNulls(args: () => readonly GraphQLArgument[], values: Values, isQuery: boolean): Values {
  if (!hasNull(values)) return values
  const given: Values = {}
  const problems = new Problems()
  problems.collect(() => {
    for (const arg of args()) {
      const { name, defaultValue } = arg
      const value = isQuery ? (values[name] ?? defaultValue) : values[name]
      if (value !== undefined) given[name] = value
      judge(arg, value, (path) => pathText([name, ...path]), problems)
    }
  })
  if (problems.refusal) throw problems.refusal
  return given
}
