import {
  coerceInputValue,
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
} from 'graphql'
import type { z } from 'zod'
import { type ApiError, InvalidValue } from './errors.js'
import { anyOf, didYouMean, type Path, Problems, pathText, shownName, unknownNames, wrongValue } from './problems.js'
import { MAX_INT } from './validation.js'

// Which values of a request are wrong, by their types and by their rules.

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

/** What is wrong with the number of items of a list. None of them is read. */
export function wrongLengthOf({ type, extensions }: Input, value: unknown): string | undefined {
  if (!Array.isArray(value) || !isListType(getNullableType(type))) return
  const issues = rulesOf({ extensions }).flatMap((rule) => rule.safeParse(value).error?.issues ?? [])
  return issues.find(({ path }) => path.length === 0)?.message
}

type OnError = NonNullable<Parameters<typeof coerceInputValue>[2]>
// How graphql-js begins its messages. Its own suggestions would take a search for each unknown name.
const MISSING = /^Field "(\w+)" of required type/
const UNKNOWN = 'Field "'
const HIDE_SUGGESTIONS = true

/**
 * The value of an argument in the form that resolvers take, judged by its type and its rules. What is wrong goes to
 * `problems`.
 *
 * @param nameOf the name of the place that a path from the argument leads to; an empty path is the argument itself
 */
export function judge(argument: Input, value: unknown, nameOf: (path: Path) => string, problems: Problems): void {
  const wrongLength = wrongLengthOf(argument, value)
  if (wrongLength) {
    problems.add(wrongValue(nameOf([]), value, wrongLength))
    return
  }
  const refused = new Set<string>()
  let unknownField: ReturnType<typeof unknownNames> | undefined
  const judgeWrong: OnError = (path, wrong, error) => {
    const field = inputAt(argument, path)
    refused.add(path.join('.'))
    const [, missing] = MISSING.exec(error.message) ?? []
    if (missing) return problems.add(`${nameOf([...path, missing])} is required`)
    if (!error.message.startsWith(UNKNOWN)) return problems.add(wrongType(field, nameOf(path), wrong))
    const unknown = error.message.slice(UNKNOWN.length, error.message.lastIndexOf('" is not defined by type "'))
    const type = getNamedType(field.type)
    unknownField ??= unknownNames(isInputObjectType(type) ? Object.keys(type.getFields()) : [])
    problems.add(unknownField(nameOf([...path, shownName(unknown)]), unknown))
  }
  const coerced = coerceInputValue(value, argument.type, judgeWrong, HIDE_SUGGESTIONS)
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
