import fc from 'fast-check'
import {
  buildSchema,
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLAbstractType,
  type GraphQLFieldResolver,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLScalarType,
  getIntrospectionQuery,
  getNamedType,
  getNullableType,
  getOperationAST,
  getVariableValues,
  isCompositeType,
  isListType,
  Kind,
  type OperationDefinitionNode,
  parse,
  responsePathAsArray,
  validate,
} from 'graphql'
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest'

import { type Executed, type ExecutionRequest, pause, prepare } from './index.js'

type Data = Record<string, unknown>

/** Random documents for each property. */
const CASES = Number(process.env.EXECUTOR_CASES ?? 400)

// A schema with every kind of type, each as a property (p), as a method of the parent (m), with a resolver (r), and with a
// resolver that is called once for all objects of a level (l).

const types = [
  ...['Int', 'Int!', 'String', 'Color', 'Color!', 'Picky!', 'Json', '[Int]', '[Int!]', '[Picky!]!', '[[Color!]]'],
  ...['Node', 'Node!', 'Leaf', 'Leaf!', '[Node]', '[Node!]', '[Node!]!', '[[Node!]!]', '[Leaf!]'],
  ...['Thing', 'Named!', '[Thing!]'],
]
const parameters = '(x: Int = 3, n: Int! = 2, filter: Filter, color: Color = RED, picky: Picky)'
const takesArguments = (field: string) => !field.startsWith('p') || Number(field.slice(1)) % 4 === 0
const names = ['p', 'm', 'r', 'l'].flatMap((way) => types.map((_, i) => way + i))
const typeOf = (field: string) => types[Number(field.slice(1))] as string
const namedTypeOf = (field: string) => typeOf(field).replace(/[[\]!]/g, '')
const fields = names.map((name) => `${name}${takesArguments(name) ? parameters : ''}: ${typeOf(name)}`).join('\n')
const schema = buildSchema(`
  scalar Json
  scalar Picky
  enum Color { RED GREEN }
  input Filter { min: Int! = 1, tags: [String!], color: Color, inner: Filter }
  union Thing = Node | Leaf
  interface Named { ${fields} }
  type Node implements Named { ${fields} }
  type Leaf implements Named { ${fields} }
  type Query { ${fields} }
  type Mutation { ${fields} }
`)
const objectType = (name: string) => schema.getType(name) as GraphQLObjectType
for (const type of ['Node', 'Leaf', 'Query', 'Mutation']) {
  for (const [name, field] of Object.entries(objectType(type).getFields())) {
    if (name.startsWith('r')) field.resolve = (_source, args, run: Run, info) => run.resolve(args, info)
    if (!name.startsWith('l')) continue
    // graphql-js calls it for one object.
    field.extensions = { resolvesAll: true }
    field.resolve = (source, _args, run: Run, info) =>
      Array.isArray(source) ? run.resolveAll(source, info) : run.resolveOne(source as Source, info)
  }
}
const composites = names.filter((name) => isCompositeType(schema.getType(namedTypeOf(name))))
// Names the types of interfaces. That an object has its type is not checked again.
objectType('Leaf').isTypeOf = () => true
;(schema.getType('Thing') as GraphQLAbstractType).resolveType = (value, run: Run) => run.nameOf(value as Source)
const picky = schema.getType('Picky') as GraphQLScalarType
picky.serialize = (value) => {
  if (value === 'odd') throw new Error('Too odd')
  return value === 1.5 ? null : value
}
// Validation parses literals too, and a literal that passes it must be able to fail in the execution.
let isExecuting = false
picky.parseLiteral = (node) => {
  if (isExecuting && node.kind === Kind.INT && node.value === '13') throw new Error('Bad luck')
  return node.kind === Kind.INT ? { boxed: node.value } : undefined
}

/** An object that resolvers return. */
type Source = { key: string }
/** How often values fail and how often they are asynchronous. */
const FAILURES = [0, 0.02, 0.08]
const ASYNC = [0, 0.1, 0.4]

const keyOf = (path: GraphQLResolveInfo['path']) => `/${responsePathAsArray(path).join('/')}`

/** One execution. The behavior of a resolver depends only on the seed and its path, not on the executor. */
class Run {
  readonly log: string[] = []
  readonly root = this.object('')
  readonly paths = new Map<string, unknown>()
  waiting: { rank: number; settle: () => void }[] = []

  constructor(
    readonly seed: number,
    /** Settles promises one by one, each after all effects of the previous one. Otherwise they settle on their own. */
    readonly oneByOne = true,
  ) {}

  /** A number from 0 to 1 for a key. */
  roll(key: string) {
    let hash = this.seed | 0
    for (let i = 0; i < key.length; i++) hash = Math.imul(hash ^ key.charCodeAt(i), 0x5bd1e995) ^ (hash >>> 13)
    hash = Math.imul(hash ^ (hash >>> 15), 0x2c1b3c6d)
    hash = Math.imul(hash ^ (hash >>> 12), 0x297a2d39)
    return ((hash ^ (hash >>> 15)) >>> 0) / 2 ** 32
  }

  pick<T>(key: string, values: readonly T[]) {
    return values[Math.floor(this.roll(`${key} pick`) * values.length)] as T
  }

  fails(key: string) {
    return this.roll(`${key} fails`) < this.pick('', FAILURES)
  }

  /** The value, or a promise of it. */
  maybeLater<T>(key: string, value: () => T): T | Promise<T> {
    if (this.roll(`${key} async`) >= this.pick('async', ASYNC)) return value()
    const rank = this.roll(`${key} rank`)
    if (this.oneByOne) {
      return new Promise<void>((resolve) => this.waiting.push({ rank, settle: resolve })).then(value)
    }
    let turns = Promise.resolve()
    for (let turn = 0; turn < rank * 6; turn++) turns = turns.then(() => {})
    return turns.then(value)
  }

  resolve(args: Data, info: GraphQLResolveInfo) {
    const key = keyOf(info.path)
    this.record(key, args, info)
    // Resolvers may change their arguments; the next call must not see that.
    args.x = 'changed'
    return this.value(info.returnType, key)
  }

  /** Resolves a field for one object. It may fail for all of them. */
  resolveOne({ key }: Source, { fieldName, fieldNodes: [node], returnType }: GraphQLResolveInfo) {
    if (this.fails(fieldName)) throw new Error(`All ${fieldName}`)
    return this.value(returnType, `${key}/${(node?.alias ?? node?.name)?.value}`)
  }

  resolveAll(sources: Source[], info: GraphQLResolveInfo) {
    const one = (source: Source) => {
      try {
        return this.resolveOne(source, info)
      } catch (error) {
        return error instanceof Error ? error : Promise.reject(error)
      }
    }
    if (this.fails(info.fieldName)) throw new Error(`All ${info.fieldName}`)
    return this.maybeLater(`${info.fieldName} of all`, () => sources.map(one))
  }

  record(key: string, args: Data, info: GraphQLResolveInfo) {
    const { fieldName, returnType, parentType, fieldNodes, path, operation, variableValues, fragments } = info
    const prev: unknown[] = []
    for (let at = path.prev; at; at = at.prev) {
      const known = this.paths.get(keyOf(at))
      prev.push([at.key, at.typename, known === undefined || known === at])
    }
    this.paths.set(key, path)
    // Equal fields are merged into one node.
    const nodes = fieldNodes[0]?.loc?.start
    const same = [info.schema === schema, info.rootValue === this.root, operation.kind, Object.keys(fragments)]
    const rest = [Object.keys(info).toSorted(), path.typename, prev, nodes, same, variableValues]
    this.log.push(JSON.stringify([key, args, fieldName, returnType, parentType, ...rest]))
  }

  value(type: GraphQLOutputType, key: string): unknown {
    return this.maybeLater(key, () => this.now(type, key))
  }

  now(type: GraphQLOutputType, key: string): unknown {
    if (this.fails(key)) {
      const failure = this.pick(key, ['throw', 'throw', 'error', 'null', 'undefined', 'odd'])
      if (failure === 'throw') throw this.pick(`${key} thrown`, [new Error(`Thrown at ${key}`), `No error at ${key}`])
      if (failure === 'error') return new Error(`Error at ${key}`)
      if (failure === 'null') return null
      if (failure === 'undefined') return undefined
      return this.pick(`${key} odd`, ['odd', 1.5, { a: 7 }, '', true])
    }
    const nullable = getNullableType(type)
    if (isListType(nullable)) return this.list(nullable.ofType, key)
    if (isCompositeType(nullable)) return this.object(key)
    const values: Data = {
      Int: [0, '12'],
      String: ['', 5],
      Color: ['RED', 'GREEN'],
      Json: [{ a: null, b: [null] }, 'x'],
    }
    return this.pick(key, (values[getNamedType(type).name] as unknown[]) ?? [1, 2, 3])
  }

  list(type: GraphQLOutputType, key: string): unknown {
    const item = (_: unknown, i: number) => {
      try {
        return this.value(type, `${key}/${i}`)
      } catch (error) {
        return new Error(String(error))
      }
    }
    const items = new Array(this.pick(`${key} length`, [0, 1, 2, 2, 3])).fill(0)
    if (this.roll(`${key} generator`) > 0.1) return items.map(item)
    const fails = (i: number) => this.fails(`${key}/${i} generator`)
    return (function* () {
      for (const i of items.keys()) {
        if (fails(i)) throw new Error(`Ended at ${key}/${i}`)
        yield item(undefined, i)
      }
    })()
  }

  object(key: string): unknown {
    const get = (_: object, name: string | symbol): unknown => {
      if (name === 'key') return key
      if (name === '__typename')
        return this.pick(key, this.fails(`${key} name`) ? ['Nope', 'Color', 'Query'] : ['Node', 'Leaf', undefined])
      if (typeof name === 'symbol' || !names.includes(name) || name.startsWith('r')) return undefined
      const type = objectType('Node').getFields()[name]?.type as GraphQLOutputType
      const isMethod = name.startsWith('m') !== this.roll(`${key}/${name} exchanged`) < 0.1
      if (isMethod) return (args: Data, run: Run, info: GraphQLResolveInfo) => run.resolve(args, info)
      return this.value(type, `${key}/${name}`)
    }
    return new Proxy({}, { get })
  }

  nameOf({ key }: Source) {
    return this.maybeLater(`${key} resolveType`, () => {
      if (!this.fails(`${key} resolveType`)) return this.pick(key, ['Node', 'Leaf'])
      return this.pick(key, ['Nope', 'Color', 'Query', undefined, 7, objectType('Node')]) as string
    })
  }
}

// Random documents: a tree of choices, which shrinks well, printed as a valid document.

interface Choice {
  pick: number
  alias: number
  args: number
  directive: number
  children: Choice[]
}
const choiceOf = (depth: number): fc.Arbitrary<Choice> =>
  fc.record({
    pick: fc.nat(0xffff),
    alias: fc.nat(0xffff),
    args: fc.nat(0xffff),
    directive: fc.nat(0xffff),
    children: depth > 0 ? fc.array(choiceOf(depth - 1), { maxLength: 3 }) : fc.constant([]),
  })
const choice = choiceOf(3)

const at = <T>(values: readonly T[], index: number) => values[index % values.length] as T
const ARGUMENTS = [
  ...['', '', '', '(x: 5)', '(x: null, n: 4)', '(x: $i)', '(x: $i)', '(n: $n)', '(n: $i)', '(x: $j, n: $n)', '(n: $j)'],
  ...['(color: $color)', '(color: GREEN)', '(filter: $filter)', '(filter: { tags: ["a"], color: $color })'],
  ...['(picky: 12)', '(filter: { min: $n })', '(filter: { inner: { tags: "b" } })', '(picky: 12, x: 1)'],
  ...['(picky: 13)', '(filter: null)'],
]
const NO_DIRECTIVES: string[] = new Array(20).fill('')
const DIRECTIVES = [
  ...NO_DIRECTIVES,
  ...['@include(if: true)', '@include(if: false)', '@skip(if: true)', '@skip(if: false)', '@skip(if: $b)'],
  ...['@include(if: $b)', '@include(if: $c)', '@skip(if: $c)', '@include(if: $b) @skip(if: $c)'],
]
const DECLARATIONS: Record<string, string> = {
  ...{ b: 'Boolean!', c: 'Boolean = true', i: 'Int', j: 'Int = 7', n: 'Int!', color: 'Color', filter: 'Filter' },
}

/** The text of a document for the choices. Fields of one key have the same arguments, so that they can be merged. */
function printDocument(isMutation: boolean, choices: Choice[]) {
  const fragments: { on: string; name: string; text: string }[] = []
  const select = (type: string, chosen: Choice[]): string => {
    const text = chosen.map((each) => selection(type, each)).join(' ')
    return `{ ${text || '__typename'} }`
  }
  const selection = (type: string, { pick, alias, args, directive, children }: Choice): string => {
    const suffix = at(DIRECTIVES, directive)
    const kind = pick % 16
    const isAbstract = type === 'Thing' || type === 'Named'
    if (kind === 0) return `... ${suffix} ${select(type, children)}`
    if (kind === 1 || (kind < 10 && type === 'Thing')) {
      const on = at(
        isAbstract ? ['Node', 'Leaf', 'Named'] : type === 'Node' || type === 'Leaf' ? [type, 'Named'] : [type],
        alias,
      )
      return `... on ${on} ${suffix} ${select(on, children)}`
    }
    if (kind === 2) {
      const reused = fragments.filter(({ on }) => on === type)
      if (reused.length > 0 && alias % 3 > 0) return `...${at(reused, alias).name} ${suffix}`
      const text = select(type, children)
      const name = `F${fragments.length}`
      fragments.push({ on: type, name, text })
      return `...${name} ${suffix}`
    }
    if (kind === 3 || type === 'Thing') return `${at(['', 'name: '], alias)}__typename ${suffix}`
    const name = at(children.length > 0 ? composites : names, pick >> 4)
    const given = takesArguments(name) ? args % ARGUMENTS.length : 0
    const key = at(['', `${name}_${given}: `, `a${name}_${given}: `], given ? 1 + (alias % 2) : alias)
    const prefix = name === 'p2' && alias % 4 === 0 ? '__proto__: ' : key
    const below = composites.includes(name) ? select(namedTypeOf(name), children) : ''
    return `${prefix}${name}${ARGUMENTS[given]} ${suffix} ${below}`
  }
  const body = select(isMutation ? 'Mutation' : 'Query', choices)
  const definitions = fragments.map(({ on, name, text }) => `fragment ${name} on ${on} ${text}`).join('\n')
  const used = Object.entries(DECLARATIONS).filter(([name]) => new RegExp(`\\$${name}\\b`).test(body + definitions))
  const declared = used.length > 0 ? `(${used.map(([name, type]) => `$${name}: ${type}`).join(', ')})` : ''
  return `${isMutation ? 'mutation' : 'query'} Q${declared} ${body}\n${definitions}`
}

const documents = fc
  .record({ isMutation: fc.boolean(), choices: fc.array(choice, { minLength: 1, maxLength: 3 }) })
  .map(({ isMutation, choices }) => printDocument(isMutation, choices))
const values = fc.record(
  {
    b: fc.boolean(),
    c: fc.constantFrom(true, false, true, false, true, false, null),
    i: fc.constantFrom(1, 2, 3, null),
    j: fc.constantFrom(8, 9, 10, null),
    n: fc.constantFrom(5, 6),
    color: fc.constantFrom('RED', 'GREEN', null),
    filter: fc.constantFrom<unknown>({}, { tags: 'a' }, null, { min: 3, inner: { tags: ['x', 'y'] } }),
  },
  { requiredKeys: ['b', 'n'] },
)
const calls = fc.array(fc.record({ seed: fc.integer(), raw: values as fc.Arbitrary<Data> }), {
  minLength: 2,
  maxLength: 3,
})

// Vitest fails for any unhandled rejection. graphql-js leaves some, so they are counted here instead.
let unhandled = 0
const count = () => {
  unhandled++
}
const { stackTraceLimit } = Error
let listeners: NodeJS.UnhandledRejectionListener[] = []
beforeAll(() => {
  listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', count)
  isExecuting = true
  Error.stackTraceLimit = 0 // traces take most of the time where errors are many
})
afterAll(() => {
  process.removeListener('unhandledRejection', count)
  for (const listener of listeners) process.on('unhandledRejection', listener)
  isExecuting = false
  Error.stackTraceLimit = stackTraceLimit
})
beforeEach(() => {
  unhandled = 0
})
const turn = () => new Promise<void>((resolve) => setImmediate(resolve))

/** Executes until all promises have settled, including those that the result does not wait for. */
async function outcomeOf(run: Run, start: () => ExecutionResult | Promise<ExecutionResult>) {
  const before = unhandled
  const returned = start()
  const isSync = !(returned instanceof Promise)
  let result: ExecutionResult | undefined = isSync ? returned : undefined
  if (!isSync) {
    returned.then((value) => {
      result = value
    })
  }
  // Also the rejections that a synchronous result has left are counted now.
  await turn()
  while (run.waiting.length > 0) {
    run.waiting.sort((a, b) => a.rank - b.rank)
    run.waiting.shift()?.settle()
    await turn()
  }
  // Lists that give way end some turns later.
  for (let turns = 0; !result && turns < 1_000; turns++) await turn()
  if (!result) throw new Error('The execution does not end')
  return { result, isSync, log: run.log, unhandled: unhandled - before }
}

function coerce(document: DocumentNode, raw: Data) {
  const definitions = (document.definitions[0] as OperationDefinitionNode).variableDefinitions ?? []
  const { coerced, errors } = getVariableValues(schema, definitions, raw)
  if (errors) throw errors[0]
  return coerced
}

const parseValid = (text: string) => {
  const document = parse(text)
  isExecuting = false
  const errors = validate(schema, document)
  isExecuting = true
  if (errors.length > 0) throw new Error(`${errors[0]?.message} in ${text}`)
  return document
}

const operationOf = (document: DocumentNode) => getOperationAST(document) as OperationDefinitionNode

type Outcome = Awaited<ReturnType<typeof outcomeOf>>

/** Both executors' outcomes for each call of a document. */
async function compare(
  text: string,
  requests: { seed: number; raw: Data }[],
  { oneByOne, nulls, givesWay }: { oneByOne: boolean; nulls?: 'omit'; givesWay?: boolean },
  check: (ours: Outcome, theirs: Outcome) => void,
) {
  const document = parseValid(text)
  const operation = prepare(schema, document, operationOf(document), { nulls })
  for (const { seed, raw } of requests) {
    const [a, b] = [new Run(seed, oneByOne), new Run(seed, oneByOne)]
    const variableValues = structuredClone(raw)
    const theirs = await outcomeOf(a, () => {
      return execute({ schema, document, rootValue: a.root, contextValue: a, variableValues }) as ExecutionResult
    })
    const variables = coerce(document, structuredClone(raw))
    let items = 0
    const pause = givesWay ? () => (b.roll(`item ${items++}`) < 0.2 ? turn() : undefined) : undefined
    const ours = await outcomeOf(b, () => read(operation({ rootValue: b.root, contextValue: b, variables, pause })))
    check(ours, theirs)
  }
}

/** A result with its data parsed. */
const read = (executed: Executed | Promise<Executed>): ExecutionResult | Promise<ExecutionResult> => {
  if (executed instanceof Promise) return executed.then(read)
  const { data, ...rest } = executed
  if (!data) return { ...rest, data } as ExecutionResult
  const entries = Array.from(data, ([key, json]) => [key, JSON.parse(json)])
  return { ...rest, data: Object.assign(Object.create(null), Object.fromEntries(entries)) }
}

/** Where in the data errors show: the shallowest null on the path of each. */
function positionsOf({ data, errors = [] }: ExecutionResult) {
  const positions = new Set(
    errors.map((error) => {
      const path = error.path ?? []
      let value: unknown = data
      let depth = 0
      while (value !== null && value !== undefined && depth < path.length)
        value = (value as Data)[path[depth++] as string]
      return JSON.stringify(path.slice(0, depth))
    }),
  )
  return [...positions].toSorted()
}

const withoutNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(withoutNulls)
  // Objects of graphql-js have no prototype; any other object is the value of a scalar.
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== null) return value
  const kept = Object.entries(value).filter(([, each]) => each !== null)
  return Object.assign(Object.create(null), Object.fromEntries(kept.map(([key, each]) => [key, withoutNulls(each)])))
}

describe('any document over any resolvers', () => {
  // Of several errors below one null, one is reported; which one depends on the order of execution. Fields beside one that
  // fails may be executed, or not.
  for (const [way, oneByOne] of [
    ['settle one by one', true],
    ['settle on their own', false],
  ] as const)
    it(`has the data of graphql-js, errors at the same places, and calls the same resolvers, if promises ${way}`, async () => {
      const property = fc.asyncProperty(documents, calls, (text, requests) =>
        compare(text, requests, { oneByOne }, (ours, theirs) => {
          const mayDiffer = theirs.result.errors || /\bl\d/.test(text)
          const normal = ({ result, isSync }: Outcome) => [result.data, positionsOf(result), mayDiffer || isSync]
          expect(JSON.stringify([...normal(ours), ours.unhandled])).toBe(JSON.stringify([...normal(theirs), 0]))
          if (!theirs.result.errors) expect(ours.log.toSorted()).toEqual(theirs.log.toSorted())
        }),
      )
      await fc.assert(property, { numRuns: CASES })
    })

  // A list that fails may have called fewer resolvers of its items, or more.
  it('has the data of graphql-js, and errors at the same places, if lists give way to other work', async () => {
    const property = fc.asyncProperty(documents, calls, (text, requests) =>
      compare(text, requests, { oneByOne: false, givesWay: true }, (ours, theirs) => {
        const normal = ({ result }: Outcome) => [result.data, positionsOf(result)]
        expect(JSON.stringify([...normal(ours), ours.unhandled])).toBe(JSON.stringify([...normal(theirs), 0]))
      }),
    )
    await fc.assert(property, { numRuns: CASES })
  })

  it('has no key with the value null if nulls are omitted, but keeps null items and nulls in scalars', async () => {
    const property = fc.asyncProperty(documents, calls, (text, requests) =>
      compare(text, requests, { oneByOne: true, nulls: 'omit' }, (ours, theirs) => {
        const expected = [withoutNulls(theirs.result.data), positionsOf(theirs.result)]
        const positions = positionsOf({ ...theirs.result, errors: ours.result.errors })
        expect(JSON.stringify([ours.result.data, positions])).toBe(JSON.stringify(expected))
      }),
    )
    await fc.assert(property, { numRuns: CASES })
  })
})

/** Prepares an operation over a small schema with the given resolvers. */
function prepared(sdl: string, resolvers: Record<string, GraphQLFieldResolver<unknown, unknown>>, text: string) {
  const small = buildSchema(sdl)
  for (const [name, resolve] of Object.entries(resolvers)) {
    const [type, field] = name.split('.') as [string, string]
    Object.assign((small.getType(type) as GraphQLObjectType).getFields()[field] ?? {}, { resolve })
  }
  const document = parse(text)
  const theirs = () => execute({ schema: small, document }) as Promise<ExecutionResult>
  const operation = prepare(small, document, operationOf(document))
  return { operation: (request: ExecutionRequest = {}) => read(operation(request)), theirs, schema: small, document }
}

describe('a prepared operation', () => {
  it('is synchronous if its resolvers are, and treats a thenable as a promise', async () => {
    // biome-ignore lint/suspicious/noThenProperty: as Prisma's queries are
    const thenable = { then: (resolve: (value: unknown) => void) => Promise.resolve(2).then(resolve) }
    const { operation } = prepared('type Query { a: Int b: Int }', {}, '{ a b }')
    expect(operation({ rootValue: { a: 1, b: 2 } })).toEqual({ data: { a: 1, b: 2 } })
    const result = operation({ rootValue: { a: thenable, b: 1 } })
    expect(result).toBeInstanceOf(Promise)
    expect(JSON.stringify(await result)).toBe('{"data":{"a":2,"b":1}}')
  })

  it('executes mutations one after another, and stops at a non-null one that fails', async () => {
    const order: string[] = []
    const step = (name: string) => async () => {
      order.push(`${name} starts`)
      await turn()
      order.push(`${name} ends`)
      return name === 'c' ? null : name
    }
    const root = Object.fromEntries(['a', 'b', 'c', 'd'].map((name) => [name, step(name)]))
    const sdl = 'type Query { a: String } type Mutation { a: String b: String c: String! d: String }'
    const { operation } = prepared(sdl, {}, 'mutation { a b c d }')
    expect(await operation({ rootValue: root })).toMatchObject({ data: null, errors: [{ path: ['c'] }] })
    expect(order).toEqual(['a starts', 'a ends', 'b starts', 'b ends', 'c starts', 'c ends'])
  })

  it('returns the introspection result of graphql-js', () => {
    const nested = `{ __schema { types { name fields { ...F args { type { ...T fields { ...F } } } } } } }
      fragment F on __Field { name description type { ...T ofType { ...T inputFields { type { name } } } } }
      fragment T on __Type { kind name enumValues { name } }`
    for (const query of [getIntrospectionQuery(), nested]) {
      const { operation, theirs } = prepared('type Query { a(b: Int, c: Int!): Int! d: [Query!] }', {}, query)
      expect(JSON.stringify(operation({}))).toBe(JSON.stringify(theirs()))
    }
  })

  it('uses variables unchanged', () => {
    const sdl = 'type Query { a(x: Int!): Int }'
    const resolvers = { 'Query.a': (_source: unknown, { x }: { x?: unknown }) => x }
    const { operation } = prepared(sdl, resolvers as never, 'query ($x: Int!) { a(x: $x) }')
    expect(operation({ variables: { x: '5' } })).toEqual({ data: { a: 5 } })
  })

  it('respects @skip and @include for any number of combinations', () => {
    const letters = [...'abcdef']
    const declared = letters.map((name) => `$${name}: Boolean!`).join()
    const body = letters.map((name) => `${name} @include(if: $${name})`).join(' ')
    const fields = letters.map((name) => `${name}: Int`).join(' ')
    const { operation } = prepared(`type Query { z: Int ${fields} }`, {}, `query (${declared}) { z ${body} }`)
    for (let round = 0; round < 2; round++) {
      for (let bits = 0; bits < 64; bits++) {
        const variables = Object.fromEntries(letters.map((name, i) => [name, (bits & (1 << i)) > 0]))
        const selected = ['z', ...letters.filter((name) => variables[name])]
        const { data } = operation({ variables }) as ExecutionResult
        expect(Object.keys(data ?? {})).toEqual(selected)
      }
    }
  })
})

describe('a cancelled execution', () => {
  const sdl = 'type Query { a: Item b: Int } type Item { id: Int }'

  it('calls no further resolver, and rejects with the reason', async () => {
    let reason: Error | undefined
    const cancelled = () => reason
    let release = (_: unknown) => {}
    const called: string[] = []
    const root = {
      a: () => new Promise((resolve) => (release = resolve)),
      b: () => called.push('b'),
    }
    const { operation } = prepared(sdl, {}, '{ a { id } b }')
    const result = operation({ rootValue: root, cancelled })
    reason = new Error('Too late')
    release({ id: () => called.push('id') })
    await expect(result).rejects.toThrow('Too late')
    expect(called).toEqual(['b'])
    expect(unhandled).toBe(0)
  })

  it('ends in the middle of a long list, whatever else it waits for', async () => {
    let completed = 0
    const items = Array.from({ length: 1_000 }, () => ({ id: () => completed++ }))
    const small = 'type Query { never: Int items: [Item] } type Item { id: Int! }'
    const { operation } = prepared(small, {}, '{ never items { id } }')
    const result = async () =>
      operation({
        rootValue: { never: new Promise(() => {}), items: () => turn().then(() => items) },
        pause: turn,
        cancelled: () => (completed >= 10 ? new Error('Too late') : undefined),
      })
    await expect(result()).rejects.toThrow('Too late')
    await turn()
    expect(completed).toBeLessThan(100)
    expect(unhandled).toBe(0)
  })

  it('throws the reason if it is cancelled before, or by a resolver', () => {
    const { operation } = prepared(sdl, {}, '{ a { id } b }')
    let reason: Error | undefined
    const cancelled = () => reason
    const root = {
      a: () => {
        reason = new Error('Enough')
      },
      b: () => expect.unreachable(),
    }
    const run = () => operation({ rootValue: root, cancelled })
    expect(run).toThrow('Enough')
    expect(run).toThrow('Enough')
  })
})

describe('a result that becomes too long', () => {
  const items = Array.from({ length: 10 }, () => ({ id: 1 }))
  const sdl =
    'type Query { a: Item items: [Item!] named: [Named!] } interface Named { id: Int } type Item implements Named { id: Int }'
  const key = 'k'.repeat(100)

  it.each([
    ['of properties', `{ items { ${key}: id } }`, {}],
    ['of fields with a resolver', `{ items { ${key}: id } }`, { 'Item.id': () => 1 }],
    ['of objects', `{ items { id } ${key.repeat(10)}: items { id } }`, {}],
  ])('ends the execution, keys counted: %s', (_, query, resolvers) => {
    const { operation } = prepared(sdl, resolvers, query)
    expect(operation({ rootValue: { items }, maxLength: 2_000 })).toHaveProperty('data')
    expect(() => operation({ rootValue: { items }, maxLength: 1_000 })).toThrow('longer than 1000 characters')
  })

  it('ends the execution, each use of a type by a field counted', () => {
    const fields = Array.from({ length: 10 }, (_, i) => `f${i}: Int`).join(' ')
    const query = `{ __type(name: "Query") { fields { type { ${key}: name } } } }`
    const { operation } = prepared(`type Query { ${fields} }`, {}, query)
    expect(operation({ maxLength: 2_000 })).toHaveProperty('data')
    expect(() => operation({ maxLength: 1_000 })).toThrow('longer than 1000 characters')
  })

  it('leaves nothing unhandled of what it has begun', async () => {
    const a = turn().then(() => ({ id: 1 }))
    const named = [{ __typename: 'Item', id: () => turn().then(() => 1) }, ...items]
    for (const query of ['{ a { id } items { id } }', '{ named { ... on Item { id } items: id } items { id } }']) {
      const { operation } = prepared(sdl, {}, query)
      await expect((async () => operation({ rootValue: { a, items, named }, maxLength: 50 }))()).rejects.toThrow(
        'longer',
      )
      await turn()
      await turn()
    }
    expect(unhandled).toBe(0)
  })
})

it('an execution that is long lets those that come later end first', async () => {
  const { operation } = prepared('type Query { items: [Item!] } type Item { id: Int }', {}, '{ items { id } }')
  const ended: string[] = []
  const id = () => {
    const end = performance.now() + 0.05
    while (performance.now() < end);
    return 1
  }
  const run = async (name: string, count: number) => {
    await operation({ rootValue: { items: Array.from({ length: count }, () => ({ id })) }, pause })
    ended.push(name)
  }
  const long = [run('long', 5_000), run('as long', 5_000)]
  await turn()
  await Promise.all([...long, run('short', 100)])
  expect(ended[0]).toBe('short')
})

it('does what its README shows', async () => {
  const schema = buildSchema('type Query { books(limit: Int!): [Book!]! } type Book { title: String! author: String }')
  const document = parse('query ($limit: Int!) { books(limit: $limit) { title author } }')
  const operation = document.definitions[0] as OperationDefinitionNode

  const run = prepare(schema, document, operation)
  const books = ({ limit }: { limit: number }) => [{ title: 'Emma' }, { title: 'Middlemarch' }].slice(0, limit)
  const { data } = await run({ variables: { limit: 1 }, rootValue: { books }, pause, maxLength: 8_000 })
  data?.get('books') // '[{"title":"Emma","author":null}]'

  expect(data?.get('books')).toBe('[{"title":"Emma","author":null}]')
})
