import { readFileSync, writeFileSync } from 'node:fs'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { initContextCache } from '@pothos/core'
import {
  defaultFieldResolver,
  type GraphQLField,
  GraphQLList,
  GraphQLObjectType,
  GraphQLSchema,
  getNamedType,
  getNullableType,
  isLeafType,
  isListType,
  isObjectType,
  isRequiredArgument,
  type OperationDefinitionNode,
  parse,
  TypeNameMetaFieldDef,
} from 'graphql'
import { schema } from '../../../schema/index.js'
import { prepare } from '../../../src/engines/executor/executor.js'
import { createReads } from '../../../src/engines/postgres/reads.js'
import { openDatabase } from '../../../src/gateway/database/index.js'
import { table } from './markdown.js'
import { median } from './results.js'

// Writes the table of docs/prices.md: what completing each field of the schema takes of processor time, over reading a
// property, beside the weight that the field declares. Everything follows from the schema, so that a new field is in it.

const PAGE = 'docs/prices.md'
const MARKERS = ['<!-- measured: npm run bench:limits -->', '<!-- end -->'] as const
const ROWS = 100
/** Objects that one document completes a field of. */
const OBJECTS = 1_000
/** A property takes so little that several are needed to measure it. They cost the same each. */
const COPIES = 20
const ROUNDS = 20

type Field = GraphQLField<unknown, unknown>
type Step = { field: Field; size: number }

const query = schema.getQueryType() as GraphQLObjectType
const isList = ({ type }: Field) => isListType(getNullableType(type))
const isProperty = ({ resolve, type }: Field) => !resolve && isLeafType(getNamedType(type))

/** How a field is selected; `size` is the length of its list. */
function call({ name, args, extensions: { list } }: Field, size: number): string {
  const given = args.flatMap((arg) => {
    if (list && arg.name === (list.isConnection ? 'first' : 'limit')) return `${arg.name}: ${size}`
    return isRequiredArgument(arg) ? `${arg.name}: 1` : []
  })
  return given.length > 0 ? `${name}(${given.join(', ')})` : name
}

interface Path {
  steps: Step[]
  objects: number
}

/** The ways to a type, the shortest first. A list is long once; what is below it has one item each. */
function pathsTo(type: GraphQLObjectType): Path[] {
  let open: { steps: Step[]; at: GraphQLObjectType; objects: number }[] = [{ steps: [], at: query, objects: 1 }]
  const found: Path[] = []
  for (let depth = 0; depth < 3; depth++) {
    open = open.flatMap(({ steps, at, objects }) =>
      Object.values(at.getFields()).flatMap((field) => {
        const below = getNamedType(field.type)
        if (!isObjectType(below)) return []
        const above = steps.at(-1)
        const size = objects > 1 ? 1 : ROWS
        const items = isList(field) ? (field.extensions.list ? size : (above?.size ?? 1)) : 1
        const next = { steps: [...steps, { field, size }], at: below, objects: objects * items }
        return next
      }),
    )
    found.push(...open.filter(({ at }) => at === type))
  }
  return found
}

type Execute = ReturnType<typeof prepare>

function prepared(text: string, of = schema): Execute {
  const document = parse(text)
  return prepare(of, document, document.definitions[0] as OperationDefinitionNode)
}

/** What resolvers of a type get: the values that the documents of clients lead to. */
async function sourcesOf(type: GraphQLObjectType, context: () => object): Promise<object[]> {
  const [path] = pathsTo(type).sort((a, b) => b.objects - a.objects || a.steps.length - b.steps.length)
  const [field] = Object.values(type.getFields()).filter(({ type }) => isLeafType(getNamedType(type)))
  if (!path || !field) return []
  const { resolve } = field
  const sources: object[] = []
  field.resolve = (source, ...others) => {
    sources.push(source as object)
    return (resolve ?? defaultFieldResolver)(source, ...others)
  }
  const inside = path.steps.reduceRight(
    // A connection is measured with one item, so that its items do not count.
    (body, { field, size }, i) =>
      `${call(field, i === path.steps.length - 1 && field.extensions.list?.isConnection ? 1 : size)} { ${body} }`,
    call(field, 1),
  )
  await prepared(`{ ${inside} }`)({ contextValue: context() })
  field.resolve = resolve
  return sources
}

/** As many objects as wanted, of which none has been seen before. */
const copies = (sources: object[], count: number): object[] =>
  Array.from({ length: count }, (_, i) => {
    const source = sources[i % sources.length] as object
    return Object.assign(Object.create(Object.getPrototypeOf(source)), source)
  })

/** A schema that leads to a type at once. */
const schemaOf = (type: GraphQLObjectType) =>
  new GraphQLSchema({
    query: new GraphQLObjectType({ name: 'Query', fields: { items: { type: new GraphQLList(type) } } }),
  })

/** Of this thread, in µs. Without the first call, the file is as old as the last interrupt. */
function processorTime(): number {
  process.cpuUsage()
  return Number(readFileSync('/proc/thread-self/schedstat', 'latin1').split(' ')[0]) / 1e3
}

/** Rounded to 1, 2 or 5, so that equal code gives equal figures. */
function rounded(value: number): number {
  const scale = 10 ** Math.floor(Math.log10(value))
  const step = [1, 2, 5, 10].find((step) => value / scale <= step * 1.4) as number
  return Math.max(1, step * scale)
}

/** Microseconds by field. */
async function measure(context: () => object) {
  const types = Object.values(schema.getTypeMap()).filter(
    (type): type is GraphQLObjectType =>
      isObjectType(type) && !type.name.startsWith('__') && type !== query && type !== schema.getMutationType(),
  )
  const cases = []
  for (const type of types) {
    const sources = await sourcesOf(type, context)
    if (sources.length === 0) throw new Error(`No document leads to ${type.name}`)
    const direct = schemaOf(type)
    const base = prepared('{ items { __typename } }', direct)
    for (const field of [...Object.values(type.getFields()), TypeNameMetaFieldDef]) {
      const times = isProperty(field) || field === TypeNameMetaFieldDef ? COPIES : 1
      const selected = isLeafType(getNamedType(field.type)) ? call(field, 1) : `${call(field, 1)} { __typename }`
      const all = Array.from({ length: times }, (_, i) => `f${i}: ${selected}`).join(' ')
      const full = prepared(`{ items { __typename ${all} } }`, direct)
      cases.push({
        name: `${type.name}.${field.name}`,
        field,
        sources,
        times,
        base,
        full,
        without: [] as number[],
        with: [] as number[],
      })
    }
  }
  const timeOf = async (execute: Execute, sources: object[]) => {
    const rootValue = { items: copies(sources, OBJECTS) }
    const contextValue = context()
    const before = processorTime()
    const { errors } = await execute({ contextValue, rootValue })
    const time = processorTime() - before
    if (errors?.[0]) throw errors[0]
    return time
  }
  for (let round = 0; round < ROUNDS; round++)
    for (const each of cases) {
      each.without.push(await timeOf(each.base, each.sources))
      each.with.push(await timeOf(each.full, each.sources))
    }
  return cases.map(({ name, field, without, with: full, times }) => ({
    name,
    field,
    time: (Math.min(...full) - Math.min(...without)) / times / OBJECTS,
  }))
}

const folder = await mkdtemp(join(tmpdir(), 'weights-'))
const database = await openDatabase({ DATA_DIR: folder, EMBEDDED_DB_PORT: 0 }, { timeoutMs: 60_000 })
try {
  const { prisma } = database
  await prisma.$executeRaw`INSERT INTO "Category" (name) SELECT 'Category ' || i FROM generate_series(1, ${ROWS}) i`
  await prisma.$executeRaw`INSERT INTO "Pet" (name, "categoryId") SELECT 'Pet ' || i, i FROM generate_series(1, ${ROWS}) i`
  await prisma.$executeRaw`INSERT INTO "Order" ("petId", "shipDate") SELECT i, now() FROM generate_series(1, ${ROWS}) i`
  const window = { limit: 1, remaining: 1, reset: 1 }
  const reads = createReads(database.tables)(database.query)
  const quota = async () => ({ plan: 'Free', minute: window, day: window })
  const measured = await measure(() => Object.assign(initContextCache(), { prisma, reads, quota }))
  const property = median(measured.filter(({ field }) => isProperty(field)).map(({ time }) => time))
  const rows = measured.map(({ name, field, time }) => {
    const declared =
      (field.extensions as { weight?: number }).weight ??
      (isLeafType(getNamedType(field.type)) ? 1 : field.extensions.list ? 'its items' : 'an object')
    return [`\`${name}\``, rounded(time / property), declared]
  })
  const written = `${MARKERS[0]}\n${table(['field', 'measured ratio', 'declared weight'], rows)}\n${MARKERS[1]}`
  const text = readFileSync(PAGE, 'utf8')
  const [begin, end] = MARKERS.map((marker) => text.indexOf(marker)) as [number, number]
  if (begin < 0 || end < begin) throw new Error(`${PAGE} lacks its markers: ${MARKERS.join(' and ')}`)
  writeFileSync(PAGE, text.slice(0, begin) + written + text.slice(end + MARKERS[1].length))
} finally {
  await database.close()
  await rm(folder, { recursive: true })
}
