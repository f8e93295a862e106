import fc from 'fast-check'
import {
  type GraphQLArgument,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  isAbstractType,
  isCompositeType,
  isEnumType,
  isInputObjectType,
  isListType,
  isObjectType,
  isRequiredArgument,
  isRequiredInputField,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
} from 'graphql'
import { nodeIdOf } from './documents.js'

// Random documents that are as large as the limits of a document allow, from nothing but the schema. A tree of choices,
// which shrinks well, says what is selected and how many times under aliases. What stands below an alias is written once,
// in a fragment, so that a short document can select very much.

// The limits of a document (src/gateway/graphql/limits.ts). Another value here costs nothing but cases that are refused.
const MAX_FIELDS = 500
const MAX_ALIASES = 100
const MAX_INTROSPECTION_ALIASES = 5
const MAX_TOKENS = 2_000
const MAX_DEPTH = 10
const MAX_REPETITIONS = 10
/** Letters of aliases, which leave room for the rest of 64 KiB. */
const MAX_LETTERS = 50_000
/** Selections with all fragments expanded, under each alias again. */
const MAX_EXPANDED = 5_000
const MAX_LIMIT = 100

interface Choice {
  field: number
  copies: number
  wrap: number
  args: number
  children: Choice[]
}

const MANY = 0xffffff
/** A tree whose nodes have as many children as `childrenOf` chooses. */
const choiceOf = (
  depth: number,
  childrenOf: (child: fc.Arbitrary<Choice>) => fc.Arbitrary<Choice[]>,
): fc.Arbitrary<Choice> =>
  fc.record({
    field: fc.nat(MANY),
    copies: fc.oneof(
      { withCrossShrink: true },
      // Most at the bottom, where the most is selected.
      { weight: depth < 2 ? 2 : 8, arbitrary: fc.constant(1) },
      { weight: 1, arbitrary: fc.integer({ min: 2, max: 10 }) },
      { weight: depth < 2 ? 4 : 1, arbitrary: fc.integer({ min: 11, max: MAX_ALIASES }) },
    ),
    wrap: fc.nat(MANY),
    args: fc.nat(MANY),
    children: depth > 0 ? childrenOf(choiceOf(depth - 1, childrenOf)) : fc.constant<Choice[]>([]),
  })

/** One path down, on which all aliases are: what is below them is selected most often. */
const path = (depth: number) =>
  fc.array(
    choiceOf(depth, (child) => fc.array(child, { minLength: 1, maxLength: 1 })),
    { minLength: 1, maxLength: 1 },
  )
const trees = fc.array(
  choiceOf(MAX_DEPTH - 1, (child) =>
    fc.oneof(
      { withCrossShrink: true },
      { weight: 1, arbitrary: fc.constant<Choice[]>([]) },
      { weight: 4, arbitrary: fc.array(child, { minLength: 1, maxLength: 1 }) },
      { weight: 3, arbitrary: fc.array(child, { minLength: 1, maxLength: 3 }) },
    ),
  ),
  { minLength: 1, maxLength: 3 },
)
const shapes = fc.oneof(trees, ...[1, 2, 3, 3, 4, 5, 6, 8].map(path))

export interface LargeDocument {
  query: string
  variables: Record<string, unknown>
  /** What it selects, on one line for readers: `50 × edges { cursor }`. */
  outline: string
}

/** A document for each size of its lists. */
export interface SizedDocument {
  at(limit: number): LargeDocument
  /** The last size that was tried. */
  tried?: number
}

type Field = GraphQLField<unknown, unknown, { resolve?: unknown }>

const at = <T>(values: readonly T[], index: number) => values[index % values.length] as T
const isList = ({ type, extensions }: Field) => isListType(getNullableType(type)) || extensions.list !== undefined
/** Fields of one key must have it in common. */
const shapeOf = ({ type }: Field) => String(type).replace(/\w+/, isCompositeType(getNamedType(type)) ? 'object' : '$&')
const isComposite = ({ type }: Field) => isCompositeType(getNamedType(type))

/** Repeats what is more likely to be dear: lists, and fields that are computed. */
const biased = (fields: Field[]) =>
  fields.flatMap((field) => Array<Field>(isList(field) ? 4 : field.resolve ? 3 : 1).fill(field))

// graphql-js refuses more than two of them in each other.
const DEEP_INTROSPECTION = ['fields', 'interfaces', 'possibleTypes', 'inputFields']
const MAX_DEEP = 2

/** Where a selection stands: below how many fields, and below how many of introspection; undefined outside of it. */
interface Place {
  depth: number
  deep?: number
}

/** Whether a change can be asked for without changing anything. */
const changesNothing = ({ extensions, args }: Field) =>
  extensions.rest?.method === 'PATCH' &&
  args.every(({ type }) => {
    const input = getNamedType(type)
    return !isInputObjectType(input) || !Object.values(input.getFields()).some(isRequiredInputField)
  })

interface Options {
  limit: number
  /** Of the aliases that were chosen, this part is written. */
  share: number
}

/** A field, and the keys under which it is selected. */
interface WrittenField {
  field: Field
  keys: string[]
}

interface Written extends LargeDocument {
  fits: boolean
}

function write(
  schema: GraphQLSchema,
  kind: 'query' | 'mutation',
  choices: Choice[],
  { limit, share }: Options,
): Written {
  const root = (kind === 'query' ? schema.getQueryType() : schema.getMutationType()) as GraphQLObjectType
  const typeNames = Object.values(schema.getTypeMap()).flatMap((type) => (isObjectType(type) ? [type.name] : []))
  const fragments: string[] = []
  const declared: string[] = []
  const variables: Record<string, unknown> = {}
  const counts = { fields: 0, aliases: 0 }
  let introspectionAliases = MAX_INTROSPECTION_ALIASES
  let names = 0
  let letters = MAX_LETTERS

  function variable(type: string, value: unknown) {
    const name = `v${declared.length}`
    declared.push(`$${name}: ${type}`)
    variables[name] = value
    return `$${name}`
  }
  function given(arg: GraphQLArgument, value: unknown, choice: number) {
    const isName = isEnumType(getNamedType(arg.type))
    const text = choice % 3 === 2 ? variable(String(arg.type), value) : isName ? String(value) : JSON.stringify(value)
    return `${arg.name}: ${text}`
  }

  /** The argument that sizes a list, and seldom others. */
  function argument(field: Field, named: GraphQLObjectType, arg: GraphQLArgument, choice: number): string[] {
    const type = getNullableType(arg.type)
    const { list } = field.extensions
    const number = choice >> 8
    if (list) {
      // In one of eight lists the ids of its items instead, in one of four another size.
      const byIds = (choice >> 3) % 8 === 7
      const size = at([limit, limit, limit, 1], choice >> 6)
      if (arg.name === list.ids) {
        const isNode = getNamedType(arg.type).name === 'ID'
        const ids = Array.from({ length: size }, (_, i) => (isNode ? nodeIdOf(named.name, i + 1) : i + 1))
        return isNode || byIds ? [given(arg, ids, number)] : []
      }
      const sizes = list.isConnection ? at(['first', 'first', 'last'], choice >> 4) : (list.limit?.argument ?? 'limit')
      if (arg.name === sizes && (list.isConnection || !byIds)) return [given(arg, size, number)]
      // Most combinations of filters are accepted in some order only.
      if ((isEnumType(type) || type.toString() === 'Boolean') && (choice >> arg.name.length) % 8 < 7) return []
    }
    const isOptional = !isRequiredArgument(arg)
    if (isOptional && number % 2 === 0) return []
    if (isEnumType(type)) return [given(arg, at(type.getValues(), number).name, number)]
    if (type.toString() === 'Boolean') return [given(arg, number % 3 > 0, number)]
    if (isOptional) return []
    if (isInputObjectType(type)) return [given(arg, {}, number)]
    if (type.toString() === 'ID') return [given(arg, nodeIdOf(named.name, 1 + (number % limit)), number)]
    return [given(arg, type.toString() === 'String' ? at(typeNames, number) : 1 + (number % limit), number)]
  }
  const argumentsOf = (field: Field, named: GraphQLObjectType, choice: number) =>
    field.args.flatMap((arg, i) => argument(field, named, arg, (choice >> (i % 3)) + i))

  function fragment(type: GraphQLNamedType, text: string): string {
    const name = `F${fragments.length}`
    fragments.push(`fragment ${name} on ${type.name} { ${text} }`)
    return `...${name}`
  }
  /** The selection, in fragments or not. */
  function wrapped(type: GraphQLObjectType, body: string, wrap: number): string {
    switch (wrap % 8) {
      case 6:
        return `... on ${type.name} { ${body} }`
      case 1:
        return fragment(type, `... on ${type.name} { ${fragment(type, body)} }`)
      case 2:
        return Array(2 + ((wrap >> 3) % (MAX_REPETITIONS - 1)))
          .fill(fragment(type, body))
          .join(' ')
      case 3:
        return `${fragment(type, body)} @include(if: ${variable('Boolean!', true)})`
      case 4:
        return `... @skip(if: ${variable('Boolean!', false)}) { ${body} }`
      case 5:
        return fragment(type, body)
      default:
        return body
    }
  }

  function fieldsOf(type: GraphQLObjectType) {
    const fields = Object.values(type.getFields())
    if (type === root)
      return kind === 'query' ? [...fields, SchemaMetaFieldDef, TypeMetaFieldDef] : fields.filter(changesNothing)
    return [...fields, TypeNameMetaFieldDef]
  }

  function selections(type: GraphQLObjectType, chosen: Choice[], place: Place) {
    const isDeepest = place.deep === undefined && place.depth === MAX_DEPTH
    const allowed = ({ name }: Field) => !DEEP_INTROSPECTION.includes(name) || (place.deep ?? 0) < MAX_DEEP
    // Each field once, because equal keys must have equal arguments.
    const used = new Set<string>()
    const texts: string[] = []
    const outlines: string[] = []
    const all: WrittenField[] = []
    let expanded = 0
    for (const choice of chosen.length > 0 ? chosen : [{ field: 0, copies: 1, wrap: 7, args: 0, children: [] }]) {
      const left = fieldsOf(type).filter((field) => !used.has(field.name) && allowed(field))
      const preferred = left.filter((field) => isComposite(field) === (choice.children.length > 0 && !isDeepest))
      const possible = biased(preferred.length > 0 || isDeepest ? preferred : left)
      const field = possible.length > 0 ? at(possible, choice.field) : TypeNameMetaFieldDef
      if (used.has(field.name)) continue
      used.add(field.name)
      const written = selection(field, choice, place)
      texts.push(written.text)
      outlines.push(written.outline)
      all.push({ field, keys: written.keys })
      expanded += written.expanded
    }
    return { body: texts.join(' '), outline: outlines.join(' '), expanded, written: all }
  }

  /** Of another type, cheaper fields with the same keys: objects of that type have them instead. */
  function decoy(type: GraphQLObjectType, written: WrittenField[]): string {
    const texts = written.flatMap(({ field, keys }) => {
      const other = Object.values(type.getFields()).find(
        (each) => isComposite(each) && shapeOf(each) === shapeOf(field) && !each.args.some(isRequiredArgument),
      )
      if (!other) return []
      const size = other.extensions.list?.isConnection ? 'first' : 'limit'
      const args = other.extensions.list ? `(${size}: 1)` : ''
      counts.fields += keys.length
      counts.aliases += keys.length
      return keys.map((key) => `${key}: ${other.name}${args} { __typename }`)
    })
    return texts.length > 0 ? `... on ${type.name} { ${texts.join(' ')} }` : ''
  }

  function selection(field: Field, choice: Choice, { depth, deep }: Place) {
    const inIntrospection = deep !== undefined
    const wanted = choice.copies === 1 ? 1 : Math.max(1, Math.round(choice.copies * share))
    const copies = inIntrospection ? Math.max(1, Math.min(wanted, introspectionAliases)) : wanted
    if (inIntrospection && copies > 1) introspectionAliases -= copies
    const type = getNamedType(field.type)
    const possible = isAbstractType(type) ? schema.getPossibleTypes(type) : [type as GraphQLObjectType]
    const named = at(possible, choice.args)
    const given = argumentsOf(field, named, choice.args)
    const args = given.length > 0 ? `(${given.join(', ')})` : ''
    let below = ''
    let expanded = copies
    let outline = `${copies > 1 ? `${copies} × ` : ''}${field.name}${args}`
    if (isComposite(field)) {
      const levels = (deep ?? 0) + (DEEP_INTROSPECTION.includes(field.name) ? 1 : 0)
      const isIntrospection = inIntrospection || field.name.startsWith('__')
      const inside = selections(named, choice.children, {
        depth: depth + 1,
        deep: isIntrospection ? levels : undefined,
      })
      let body = wrapped(named, inside.body, choice.wrap)
      if (named !== type) {
        const others = possible.map((other) => (other === named ? '' : decoy(other, inside.written)))
        const parts = [`... on ${named.name} { ${body} }`, ...others].filter(Boolean)
        body = (choice.wrap % 16 < 8 ? parts.reverse() : parts).join(' ')
      }
      below = ` { ${copies > 1 ? fragment(type, body) : body} }`
      outline += ` { ${inside.outline} }`
      // With the spreads of its fragments.
      expanded = copies * (inside.expanded + 4)
    }
    counts.fields += copies
    // One in eight has long aliases.
    const isLong = (choice.wrap >> 12) % 8 === 7 && (copies > 1 || !inIntrospection || introspectionAliases-- > 0)
    const length = isLong ? Math.floor(letters / 2 / copies) : 0
    letters -= length * copies
    if (copies === 1 && length === 0)
      return { text: `${field.name}${args}${below}`, outline, expanded, keys: [field.name] }
    counts.aliases += copies
    if (length > 0) outline = `${length} letters: ${outline}`
    const prefix = `a${names++}_`.padEnd(length, 'x')
    const keys = Array.from({ length: copies }, (_, i) => `${prefix}${i}`)
    const text = keys.map((key) => `${key}: ${field.name}${args}${below}`).join(' ')
    return { text, outline, expanded, keys }
  }

  const { body, outline, expanded } = selections(root, choices, { depth: 1 })
  const head = declared.length > 0 ? `${kind} Q(${declared.join(', ')})` : kind
  const query = [`${head} { ${body} }`, ...fragments].join('\n')
  const tokens = query.match(/\.\.\.|[\w"]+|[^\s\w,]/g) ?? []
  const fits =
    counts.fields <= MAX_FIELDS &&
    counts.aliases <= MAX_ALIASES &&
    tokens.length <= MAX_TOKENS &&
    expanded <= MAX_EXPANDED
  return { query, variables, outline: `${kind === 'query' ? '' : 'mutation '}{ ${outline} }`, fits }
}

/** As many aliases as were chosen, or as fit. */
function largest(schema: GraphQLSchema, kind: 'query' | 'mutation', choices: Choice[], limit: number): LargeDocument {
  for (let share = 1; ; share *= 0.8) {
    const { fits, ...document } = write(schema, kind, choices, { limit: Math.min(limit, MAX_LIMIT), share })
    if (fits || share < 0.01) return document
  }
}

export const largeDocuments = (schema: GraphQLSchema): fc.Arbitrary<SizedDocument> =>
  fc
    .noBias(
      fc.record({
        kind: fc.constantFrom<('query' | 'mutation')[]>(...Array(15).fill('query'), 'mutation'),
        choices: shapes,
      }),
    )
    .map(({ kind, choices }) => ({ at: (limit) => largest(schema, kind, choices, limit) }))
