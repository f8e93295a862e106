import {
  type GraphQLArgument,
  type GraphQLInputField,
  type GraphQLInputObjectType,
  type GraphQLInputType,
  type GraphQLLeafType,
  type GraphQLNamedInputType,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isListType,
  isNonNullType,
} from 'graphql'
import type { z } from 'zod'
import { attempt } from '../attempt.js'
import { InvalidValue } from '../errors.js'
import {
  anyOf,
  didYouMean,
  type Path,
  Problems,
  pathText,
  shownName,
  sortMeant,
  unknownNames,
  wrongIssues,
  wrongValue,
} from './problems.js'
import { MAX_INT } from './rules.js'

// Reads the values of a request: arguments of REST, bodies, and variables of GraphQL.

/** An argument, or a field of an input. */
export type Input = Pick<GraphQLArgument | GraphQLInputField, 'type' | 'extensions'>
export type Values = Record<string, unknown>

/** The rules of a value beyond its type. Pothos applies them before it calls a resolver. */
export const rulesOf = ({ extensions }: Pick<Input, 'extensions'>): readonly z.ZodType[] =>
  ((extensions['@pothos/plugin-validation'] ?? {}) as { schemas?: z.ZodType[] }).schemas ?? []

const issuesOf = (input: Input, value: unknown) =>
  rulesOf(input).flatMap((rule) => rule.safeParse(value).error?.issues ?? [])

/** Where what is wrong with a value goes. */
export interface Report {
  problems: Problems
  /** The name of the place that a path from the input leads to; an empty path is the input itself. */
  nameOf: (path: Path) => string
  unknown?: ReturnType<typeof unknownNames>
  /** Where a name belongs that is unknown here, as a sentence. */
  elsewhere?: (name: string) => string | undefined
}

/**
 * Returns a value in the form that resolvers take, as GraphQL specifies it. Reports everything that its type refuses.
 *
 * @param type that of the input, or of an item in it
 */
export function readValue(input: Input, value: unknown, report: Report, path: Path = [], type = input.type): unknown {
  const bare = getNullableType(type)
  if (value == null) {
    if (bare === type) return null
  } else if (isListType(bare)) {
    const { ofType } = bare
    // A single item is a list of one.
    if (!Array.isArray(value)) return [readValue(input, value, report, path, ofType)]
    // If there are too many items, none of them is read.
    if (!issuesOf(input, value).some((issue) => issue.path.length === 0))
      return value.map((item, i) => readValue(input, item, report, [...path, i], ofType))
  } else if (isInputObjectType(bare)) {
    if (typeof value === 'object' && !Array.isArray(value)) return readFields(bare, value as Values, report, path)
  } else {
    const parsed = parse(bare as GraphQLLeafType, value)
    if (parsed !== undefined) return parsed
  }
  const place = report.nameOf(path)
  // What an item must be would not help who has sent no list.
  const lacksList = isListType(bare) && value == null
  report.problems.add(
    lacksList ? wrongValue(place, value, 'must be a JSON array') : wrongType(input, bare, place, value),
  )
}

function readFields(type: GraphQLInputObjectType, given: Values, report: Report, path: Path): Values {
  const { problems, nameOf } = report
  const known = type.getFields()
  const values: Values = {}
  for (const field of Object.values(known)) {
    const { name, defaultValue } = field
    if (given[name] !== undefined) values[name] = readValue(field, given[name], report, [...path, name])
    else if (defaultValue !== undefined) values[name] = defaultValue
    else if (isNonNullType(field.type)) problems.add(`${nameOf([...path, name])} is required`)
  }
  for (const name of Object.keys(given)) {
    if (known[name]) continue
    report.unknown ??= unknownNames(Object.keys(known), '', report.elsewhere)
    problems.add(report.unknown(nameOf([...path, shownName(name)]), name))
  }
  return values
}

/** Undefined if it is no value of the type. */
function parse(type: GraphQLLeafType, value: unknown): unknown {
  // graphql-js would search for names that are like it.
  if (isEnumType(type)) return typeof value === 'string' ? type.getValue(value)?.value : undefined
  return attempt(() => type.parseValue(value))
}

/** What a value that its type refuses must be, and which value could be meant. */
function wrongType(input: Input, bare: GraphQLInputType, place: string, value: unknown): string {
  const type = getNamedType(input.type)
  const names = isEnumType(type) ? type.getValues().map((one) => one.name) : []
  // The rules of a list say nothing of its items.
  const [issue] = isListType(getNullableType(input.type)) === isListType(bare) ? issuesOf(input, value) : []
  // A rule says more than the type, unless it says only that the type is wrong.
  const isTold = issue && !issue.message.startsWith('Invalid input')
  const search = type.name.endsWith('Sort') ? sortMeant : didYouMean
  const meant = typeof value === 'string' ? search(value, names) : undefined
  const wrong = wrongValue(place, value, isTold ? issue.message : typeRule(type, names, value))
  return `${wrong}${meant ? ` D${meant.slice(1)}` : ''}`
}

const typeRules: Record<string, string> = {
  String: 'must be a string',
  ID: 'must be a string',
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

/** Reports what is wrong with a value that was read: null where it clears nothing, and what a rule refuses. */
export function judge(input: Input, value: unknown, report: Report, path: Path = []): void {
  const { problems, nameOf } = report
  if (value === null && !input.extensions.nullable) problems.add(`${nameOf(path)} must not be null`)
  // Undefined: it was not sent, or its type refuses it.
  if (value == null) return
  const type = getNamedType(input.type)
  if (isInputObjectType(type))
    for (const [i, item] of (Array.isArray(value) ? value : [value]).entries())
      for (const field of Object.values(type.getFields()))
        judge(field, item?.[field.name], report, [...path, ...(item === value ? [] : [i]), field.name])
  // A list with an item that its type refuses is judged by no rule.
  if (Array.isArray(value) && value.includes(undefined)) return
  const issues = issuesOf(input, value)
  for (const sentence of wrongIssues(issues, value, (below) => nameOf([...path, ...below]))) problems.add(sentence)
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
      judge(arg, value, { problems, nameOf: (path) => pathText([name, ...path]) })
    }
  })
  if (problems.refusal) throw problems.refusal
  return given
}
