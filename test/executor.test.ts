import fc from 'fast-check'
import {
  buildSchema,
  type DocumentNode,
  type ExecutionResult,
  execute,
  type GraphQLAbstractType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  type GraphQLScalarType,
  getNamedType,
  getNullableType,
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
import { type ExecutionRequest, prepare } from '../src/execute/executor.js'

type Data = Record<string, unknown>

// A schema of everything: each type of value as a property (p), as a method of the parent (m), with a resolver (r).

const types = [
  ...['Int', 'Int!', 'String', 'Color', 'Color!', 'Picky!', 'Json', '[Int]', '[Int!]', '[Picky!]!', '[[Color!]]'],
  ...['Node', 'Node!', 'Leaf', 'Leaf!', '[Node]', '[Node!]', '[Node!]!', '[[Node!]!]', '[Leaf!]'],
  ...['Thing', 'Named!', '[Thing!]'],
]
const parameters = '(x: Int = 3, n: Int! = 2, filter: Filter, color: Color = RED, picky: Picky)'
const takesArguments = (field: string) => !field.startsWith('p') || Number(field.slice(1)) % 4 === 0
const names = ['p', 'm', 'r'].flatMap((way) => types.map((_, i) => way + i))
const typeOf = (field: string) => types[Number(field.slice(1))] as string
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
  }
}
objectType('Leaf').isTypeOf = (value, run: Run) => run.isLeaf(value as Source)
;(schema.getType('Thing') as GraphQLAbstractType).resolveType = (value, run: Run) => run.nameOf(value as Source)
const picky = schema.getType('Picky') as GraphQLScalarType
picky.serialize = (value) => {
  if (value === 'odd') throw new Error('Too odd')
  return value === 1.5 ? null : value
}
// Validation parses literals too: what it lets pass must be able to fail in the execution.
let isExecuting = false
picky.parseLiteral = (node) => {
  if (isExecuting && node.kind === Kind.INT && node.value === '13') throw new Error('Bad luck')
  return node.kind === Kind.INT ? { boxed: node.value } : undefined
}

/** An object that the resolvers give. */
type Source = { key: string }
/** How often things fail, and are asynchronous. */
const FAILURES = [0, 0.02, 0.08]
const ASYNC = [0, 0.1, 0.4]

const keyOf = (path: GraphQLResolveInfo['path']) => `/${responsePathAsArray(path).join('/')}`

/** One execution. What a resolver does depends on the seed and its path alone, not on the executor. */
class Run {
  readonly log: string[] = []
  readonly root = this.object('')
  readonly paths = new Map<string, unknown>()
  waiting: { rank: number; settle: () => void }[] = []

  constructor(
    readonly seed: number,
    /** Settles promises one by one, each after all consequences of the one before. Else they settle by themselves. */
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
    // Resolvers may change what they are given: the next call must not see it.
    args.x = 'changed'
    if (this.oneByOne) (args.filter as { tags?: string[] } | undefined)?.tags?.push('changed')
    return this.value(info.returnType, key)
  }

  record(key: string, args: Data, info: GraphQLResolveInfo) {
    const { fieldName, returnType, parentType, fieldNodes, path, operation, variableValues, fragments } = info
    const prev: unknown[] = []
    for (let at = path.prev; at; at = at.prev) {
      const known = this.paths.get(keyOf(at))
      prev.push([at.key, at.typename, known === undefined || known === at])
    }
    this.paths.set(key, path)
    const nodes = fieldNodes.map(({ loc }) => loc?.start)
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
      return this.pick(`${key} odd`, ['odd', 1.5, { then: 7 }, Number.NaN, '', true, Symbol.iterator])
    }
    const nullable = getNullableType(type)
    if (isListType(nullable)) return this.list(nullable.ofType, key)
    if (isCompositeType(nullable)) return this.object(key)
    const values: Data = { Int: [0, '12'], String: ['', 5], Color: ['RED', 'GREEN'], Json: [{ a: null, b: [null] }, 'x'] }
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
      if (name === '__typename') return this.pick(key, this.fails(`${key} name`) ? ['Nope', 'Color', 'Query'] : ['Node', 'Leaf', undefined])
      if (typeof name === 'symbol' || !names.includes(name) || name.startsWith('r')) return undefined
      const type = objectType('Node').getFields()[name]?.type as GraphQLOutputType
      const isMethod = name.startsWith('m') !== this.roll(`${key}/${name} exchanged`) < 0.1
      if (isMethod) return (args: Data, run: Run, info: GraphQLResolveInfo) => run.resolve(args, info)
      return this.value(type, `${key}/${name}`)
    }
    return new Proxy({}, { get })
  }

  isLeaf({ key }: Source) {
    return this.maybeLater(`${key} isTypeOf`, () => {
      if (!this.fails(`${key} isTypeOf`)) return true
      if (this.roll(`${key} isTypeOf`) < 0.5) throw new Error(`No type at ${key}`)
      return false
    })
  }

  nameOf({ key }: Source) {
    return this.maybeLater(`${key} resolveType`, () => {
      if (!this.fails(`${key} resolveType`)) return this.pick(key, ['Node', 'Leaf'])
      return this.pick(key, ['Nope', 'Color', 'Query', undefined, 7, objectType('Node')]) as string
    })
  }
}

// Random documents: a tree of choices that shrinks well, printed as a valid document.

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
    children: depth > 0 ? fc.array(choiceOf(depth - 1), { maxLength: 4 }) : fc.constant([]),
  })
const choice = choiceOf(4)

const at = <T>(values: readonly T[], index: number) => values[index % values.length] as T
const ARGUMENTS = [
  ...['', '', '(x: 5)', '(x: null, n: 4)', '(x: $i)', '(n: $n)', '(n: $i)', '(x: $j, n: $j)', '(color: $color)'],
  ...['(color: GREEN)', '(filter: $filter)', '(filter: { tags: ["a"], color: $color })', '(filter: { min: $n })'],
  ...['(filter: { inner: { tags: "b" } })', '(picky: 12)', '(picky: 13)', '(filter: null)'],
]
const NO_DIRECTIVES: string[] = new Array(12).fill('')
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
    const kind = pick % 10
    const isAbstract = type === 'Thing' || type === 'Named'
    if (kind === 0) return `... ${suffix} ${select(type, children)}`
    if (kind === 1 || (kind < 7 && type === 'Thing')) {
      const on = at(isAbstract ? ['Node', 'Leaf', 'Named'] : type === 'Node' || type === 'Leaf' ? [type, 'Named'] : [type], alias)
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
    const name = at(names, pick >> 4)
    const given = takesArguments(name) ? args % ARGUMENTS.length : 0
    const key = at(['', `${name}_${given}: `, `a${name}_${given}: `], given ? 1 + (alias % 2) : alias)
    const prefix = name === 'p2' && alias % 4 === 0 ? '__proto__: ' : key
    const named = typeOf(name).replace(/[[\]!]/g, '')
    const below = isCompositeType(schema.getType(named)) ? select(named, children) : ''
    return `${prefix}${name}${ARGUMENTS[given]} ${suffix} ${below}`
  }
  const body = select(isMutation ? 'Mutation' : 'Query', choices)
  const definitions = fragments.map(({ on, name, text }) => `fragment ${name} on ${on} ${text}`).join('\n')
  const used = Object.entries(DECLARATIONS).filter(([name]) => new RegExp(`\\$${name}\\b`).test(body + definitions))
  const declared = used.length > 0 ? `(${used.map(([name, type]) => `$${name}: ${type}`).join(', ')})` : ''
  return `${isMutation ? 'mutation' : 'query'} Q${declared} ${body}\n${definitions}`
}

const documents = fc
  .record({ isMutation: fc.boolean(), choices: fc.array(choice, { minLength: 1, maxLength: 6 }) })
  .map(({ isMutation, choices }) => printDocument(isMutation, choices))
const oneOf = <T>(...values: T[]) => fc.constantFrom(...values)
const variables = fc.record(
  {
    b: oneOf<unknown>(true, false, true, false, true, false, null),
    c: oneOf<unknown>(true, false, null),
    i: oneOf<unknown>(1, 2, null, 'bad'),
    j: oneOf<unknown>(8, 9, 8, 9, null),
    n: oneOf<unknown>(5, 6, 5, 6, 5, 6, null),
    color: oneOf<unknown>('RED', 'GREEN', null, 'RED', 'GREEN', 'BLUE'),
    filter: oneOf<unknown>({}, { tags: 'a' }, null, { min: 3, inner: { tags: ['x', 'y'] } }, { min: 'x', tags: [1, 2] }),
  },
  { requiredKeys: ['b', 'n'] },
)
const calls = fc.array(fc.record({ seed: fc.integer(), raw: variables, coerced: fc.boolean() }), {
  minLength: 2,
  maxLength: 3,
})

// Vitest fails a run for any unhandled rejection, and graphql-js leaves some: they are counted here instead.
let unhandled = 0
const count = () => {
  unhandled++
}
let listeners: NodeJS.UnhandledRejectionListener[] = []
beforeAll(() => {
  listeners = process.listeners('unhandledRejection')
  process.removeAllListeners('unhandledRejection')
  process.on('unhandledRejection', count)
  isExecuting = true
})
afterAll(() => {
  process.removeListener('unhandledRejection', count)
  for (const listener of listeners) process.on('unhandledRejection', listener)
  isExecuting = false
})
beforeEach(() => {
  unhandled = 0
})
const turn = () => new Promise((resolve) => setImmediate(resolve))

/** Executes until nothing is left to settle, also of what the result no longer waits for. */
async function outcomeOf(run: Run, start: () => ExecutionResult | Promise<ExecutionResult>) {
  const before = unhandled
  const returned = start()
  const isSync = !(returned instanceof Promise)
  let result = isSync ? returned : undefined
  if (!isSync) {
    returned.then((value) => {
      result = value
    })
    await turn()
  }
  while (run.waiting.length > 0) {
    run.waiting.sort((a, b) => a.rank - b.rank)
    run.waiting.shift()?.settle()
    await turn()
  }
  return { result: result as ExecutionResult | undefined, isSync, log: run.log, unhandled: unhandled - before }
}

function requestOf(document: DocumentNode, raw: Data, coerced: boolean): ExecutionRequest['variables'] {
  const definitions = (document.definitions[0] as OperationDefinitionNode).variableDefinitions ?? []
  const values = getVariableValues(schema, definitions, raw)
  return coerced && values.coerced ? { coerced: values.coerced } : { raw }
}

const parseValid = (text: string) => {
  const document = parse(text)
  isExecuting = false
  const errors = validate(schema, document)
  isExecuting = true
  expect(errors, text).toEqual([])
  return document
}

/** Both executors' outcomes for each call of a document. */
async function compare(
  text: string,
  requests: { seed: number; raw: Data; coerced: boolean }[],
  oneByOne: boolean,
  check: (ours: Awaited<ReturnType<typeof outcomeOf>>, theirs: Awaited<ReturnType<typeof outcomeOf>>) => void,
  nulls?: 'omit',
) {
  const document = parseValid(text)
  const operation = prepare(schema, document, undefined, { nulls })
  for (const { seed, raw, coerced } of requests) {
    const [a, b] = [new Run(seed, oneByOne), new Run(seed, oneByOne)]
    const variableValues = structuredClone(raw)
    const theirs = await outcomeOf(a, () => {
      return execute({ schema, document, rootValue: a.root, contextValue: a, variableValues }) as ExecutionResult
    })
    const request = requestOf(document, structuredClone(raw), coerced)
    const ours = await outcomeOf(b, () => operation({ rootValue: b.root, contextValue: b, variables: request }))
    check(ours, theirs)
  }
}

/** Where in the data each error shows: the shallowest null on its path, and the error itself if it is there alone. */
function positionsOf({ data, errors = [] }: ExecutionResult) {
  return new Set(
    errors.map((error) => {
      const path = error.path ?? []
      let value: unknown = data
      let depth = 0
      while (value !== null && value !== undefined && depth < path.length) value = (value as Data)[path[depth++] as string]
      return JSON.stringify(depth === path.length ? error : path.slice(0, depth))
    }),
  )
}

const stripNulls = (value: unknown): unknown => {
  if (Array.isArray(value)) return value.map(stripNulls)
  // graphql-js makes its objects without a prototype; any other is the value of a scalar.
  if (typeof value !== 'object' || value === null || Object.getPrototypeOf(value) !== null) return value
  const kept = Object.entries(value).filter(([, each]) => each !== null)
  return Object.assign(Object.create(null), Object.fromEntries(kept.map(([key, each]) => [key, stripNulls(each)])))
}

describe('any document over any resolvers', () => {
  it('has the data, errors and side effects of graphql-js, in their order, and leaves no rejection unhandled', async () => {
    const property = fc.asyncProperty(documents, calls, (text, requests) =>
      compare(text, requests, true, (ours, theirs) => {
        expect(JSON.stringify(ours.result, null, 1)).toBe(JSON.stringify(theirs.result, null, 1))
        expect(ours.log).toEqual(theirs.log)
        expect(ours.isSync).toBe(theirs.isSync)
        expect(ours.unhandled).toBe(0)
      }),
    )
    await fc.assert(property, { numRuns: 2_000 })
  })
})
