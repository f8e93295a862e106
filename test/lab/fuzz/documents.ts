import fc from 'fast-check'
import {
  type GraphQLArgument,
  type GraphQLInputType,
  type GraphQLInterfaceType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isListType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
} from 'graphql'
import { json } from '../../support/calls.js'

// Random valid documents of a schema: a tree of choices, which shrinks well, printed as text.

interface Choice {
  field: number
  key: number
  args: number[]
  directive: number
  children: Choice[]
}

const MANY = 0xffff
const choiceOf = (depth: number): fc.Arbitrary<Choice> =>
  fc.record({
    field: fc.nat(MANY),
    key: fc.nat(MANY),
    args: fc.array(fc.nat(MANY), { minLength: 6, maxLength: 6 }),
    directive: fc.nat(MANY),
    children: depth > 0 ? fc.array(choiceOf(depth - 1), { maxLength: 4 }) : fc.constant([]),
  })

/** An id of any object is that of a row of the sample data, or of none. */
export const nodeIdOf = (type: string, id: number) => Buffer.from(`${type}:${id}`).toString('base64url')

/** What is selected from: an object, or an interface. */
type Selectable = GraphQLObjectType | GraphQLInterfaceType
const isSelectable = (type: unknown): type is Selectable => isObjectType(type) || isInterfaceType(type)

const at = <T>(values: readonly T[], index: number) => values[index % values.length] as T

/** Values of each scalar. Each fits its type; those at the end break a bound, which only the resolver knows. */
const scalars: Record<string, unknown[]> = {
  Int: [1, 2, 3, 20, 100, 101, 2_147_483_647, 0, -1],
  Int64: [1, 2, 3, 4, 2n ** 53n - 1n, 2n ** 53n, 2n ** 63n - 1n],
  String: ['Tom', '🐈', 'x'.repeat(100), '"', '\\', '\u2028', 'x'.repeat(101), ''],
  Boolean: [true, false],
  ID: [nodeIdOf('Pet', 1), nodeIdOf('InventoryItem', 2), nodeIdOf('Order', 1), nodeIdOf('Category', 99), 'x'],
  DateTime: ['2026-12-24T18:00:00Z', '1970-01-01T00:00:00.000Z', '9999-12-31T23:59:59+01:00'],
}

class Enum {
  constructor(readonly name: string) {}
}

function choose(type: GraphQLInputType, choices: number[]): unknown {
  const [first = 0, ...rest] = choices
  const nullable = getNullableType(type)
  if (isListType(nullable)) return choices.slice(0, 1 + (first % 3)).map((choice) => choose(nullable.ofType, [choice]))
  if (isEnumType(nullable)) return new Enum(at(nullable.getValues(), first).name)
  if (!isInputObjectType(nullable)) return at(scalars[nullable.name] as unknown[], first)
  const fields = Object.values(nullable.getFields())
  return Object.fromEntries(
    fields.flatMap((field, i) =>
      isRequiredInputField(field) || (first >> i) % 2 === 0
        ? [[field.name, choose(field.type, rest.slice(i % rest.length))]]
        : [],
    ),
  )
}

/** As a literal of GraphQL. */
function literal(value: unknown): string {
  if (value instanceof Enum) return value.name
  if (Array.isArray(value)) return `[${value.map(literal).join(', ')}]`
  if (typeof value !== 'object' || value === null) return json(value)
  return `{${Object.entries(value).map(([name, inner]) => `${name}: ${literal(inner)}`)}}`
}

/** As JSON has it. */
const plain = (value: unknown): unknown => {
  if (value instanceof Enum) return value.name
  if (Array.isArray(value)) return value.map(plain)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, plain(inner)]))
}

export interface FuzzDocument {
  query: string
  variables: Record<string, unknown>
}

function print(schema: GraphQLSchema, kind: 'query' | 'mutation', choices: Choice[]): FuzzDocument {
  const fragments: { on: string; name: string; text: string }[] = []
  const declared: string[] = []
  const variables: Record<string, unknown> = {}

  function variable(type: string, value: unknown, choice: number) {
    const name = `v${declared.length}`
    const usesDefault = choice % 5 === 0 && !type.endsWith('!')
    declared.push(`$${name}: ${type}${usesDefault ? ` = ${literal(value)}` : ''}`)
    if (!usesDefault || choice % 2) variables[name] = plain(value)
    return `$${name}`
  }
  const directives = ({ directive }: Choice) => {
    if (directive % 8 !== 0) return ''
    const name = at(['skip', 'include'], directive >> 3)
    const value = directive % 3 === 0
    const given = directive % 16 === 0 ? variable('Boolean!', value, 1) : value
    return ` @${name}(if: ${given})`
  }
  function args(given: readonly GraphQLArgument[], choice: Choice) {
    const shown = given.flatMap((arg, i) => {
      const [first = 0, ...rest] = [...choice.args.slice(i), ...choice.args]
      if (!isRequiredArgument(arg) && first % 2) return []
      const value = choose(arg.type, rest)
      return [`${arg.name}: ${first % 3 === 0 ? variable(String(arg.type), value, first) : literal(value)}`]
    })
    return shown.length > 0 ? `(${shown.join(', ')})` : ''
  }
  function selections(type: Selectable, chosen: Choice[]): string {
    return `{ ${chosen.map((choice) => selection(type, choice)).join(' ') || '__typename'} }`
  }
  /** Itself, and those that some of its objects have: fragments on them may be selected. */
  const related = (type: Selectable): readonly Selectable[] =>
    isInterfaceType(type) ? [...schema.getPossibleTypes(type), type] : [type, ...type.getInterfaces()]

  function selection(type: Selectable, choice: Choice): string {
    const { field, key, children } = choice
    const marks = directives(choice)
    const on = at(related(type), key >> 1)
    // An interface has few fields of its own.
    const most = isInterfaceType(type) ? 6 : 1
    if (field % 16 < most) {
      const isNamed = on !== type || key % 2
      return `...${isNamed ? ` on ${on.name}` : ''}${marks} ${selections(on, children)}`
    }
    if (field % 16 < 2 * most) {
      const known = fragments.filter((fragment) => fragment.on === on.name)
      if (known.length > 0 && key % 2) return `...${at(known, key >> 3).name}${marks}`
      const text = selections(on, children)
      const name = `F${fragments.length}`
      fragments.push({ on: on.name, name, text })
      return `...${name}${marks}`
    }
    if (field % 16 === 15) return `__typename${marks}`
    const fields = Object.values(type.getFields())
    const composite = fields.filter((each) => isSelectable(getNamedType(each.type)))
    const chosen = at(children.length > 0 && composite.length > 0 ? composite : fields, field >> 4)
    const given = args(chosen.args, choice)
    // Fields of one key must have the same arguments: those with arguments have a key of their own.
    const alias = given ? `a${aliases++}: ` : at(['', '', `${chosen.name}_: `], key)
    const named = getNamedType(chosen.type)
    return `${alias}${chosen.name}${given}${marks}${isSelectable(named) ? ` ${selections(named, children)}` : ''}`
  }
  let aliases = 0
  const root = kind === 'query' ? schema.getQueryType() : schema.getMutationType()
  const body = selections(root as GraphQLObjectType, choices)
  const head = declared.length > 0 ? `${kind} Q(${declared.join(', ')})` : kind
  const definitions = fragments.map(({ on, name, text }) => `fragment ${name} on ${on} ${text}`)
  return { query: [`${head} ${body}`, ...definitions].join('\n'), variables }
}

export const validDocuments = (schema: GraphQLSchema): fc.Arbitrary<FuzzDocument> =>
  fc
    .record({
      kind: fc.constantFrom<('query' | 'mutation')[]>('query', 'query', 'mutation'),
      choices: fc.array(choiceOf(3), { minLength: 1, maxLength: 4 }),
    })
    .map(({ kind, choices }) => print(schema, kind, choices))

const TOKENS = /\.\.\.|"(?:[^"\\]|\\.)*"|[\w$@]+|[^\s\w]/g

/** The document with tokens dropped, repeated, exchanged or replaced. */
export const brokenDocuments = (schema: GraphQLSchema): fc.Arbitrary<FuzzDocument> => {
  const names = Object.values(schema.getTypeMap()).flatMap((type) => [
    type.name,
    ...(isObjectType(type) ? Object.keys(type.getFields()) : []),
  ])
  const strange = [
    '{',
    '}',
    '(',
    ')',
    '[',
    ']',
    '!',
    ':',
    '=',
    '|',
    '&',
    '@',
    '$',
    '...',
    '"""',
    '"',
    '#',
    'null',
    '0x1',
    '1e999',
    '-',
    'on',
    'fragment',
    'subscription',
    '__schema',
    '__proto__',
    '\\u{110000}',
    '\ud800',
    '\0',
    '🐈',
  ]
  const edit = fc.record({
    at: fc.double({ min: 0, max: 1, maxExcluded: true, noNaN: true }),
    how: fc.constantFrom('drop', 'repeat', 'exchange', 'replace', 'insert'),
    token: fc.constantFrom(...names, ...strange),
  })
  return fc.tuple(validDocuments(schema), fc.array(edit, { minLength: 1, maxLength: 5 })).map(([document, edits]) => {
    const tokens = document.query.match(TOKENS) ?? []
    for (const { at, how, token } of edits) {
      const i = Math.floor(at * tokens.length)
      const now = tokens[i] ?? ''
      if (how === 'drop') tokens.splice(i, 1)
      if (how === 'repeat') tokens.splice(i, 0, now)
      if (how === 'exchange') tokens.splice(i, 2, tokens[i + 1] ?? '', now)
      if (how === 'replace') tokens[i] = token
      if (how === 'insert') tokens.splice(i, 0, token)
    }
    return { ...document, query: tokens.join(' ') }
  })
}
