import { hash } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { schema } from '../../../schema/index.js'
import { json } from '../../support/calls.js'
import { type Gateway, openGateway } from '../../support/gateway.js'
import { assertHealthy, curl, type FuzzRequest, fuzz, messagesOf } from './fuzz.js'
import { type LargeDocument, largeDocuments } from './large-documents.js'
import { type Collection, slowness, type Work, watch } from './work.js'

// A search for documents that do more than they cost: as large as the limits allow, over rows that fill every list.

/** What a unit of the quota buys of processor time, and what no document exceeds, on a quiet machine. */
const MOST_UNIT_MS = 20
const MOST_BLOCKED_MS = 50
const MOST_MB = 100
/** Each document is tried with small lists first, so that one that would never end is found before it is asked for. */
const SIZES = [1, 3, 10, 30, 100]
/** As many as a busy machine needs to let one run undisturbed. What is far above a bound after a few is not disturbed. */
const ROUNDS = 12
const SURE = 4
const FAR = 4
/** A dear document is slow: how long to look for a smaller one. */
const SHRINK_MS = 60_000

/** Equal seeds make equal documents: each is measured once for all bounds that need the same collection. */
const known = new Map<string, { work: Work; slow: number }>()

let gateway: Gateway
beforeAll(async () => {
  gateway = await openGateway()
  // A hundred of everything below each of a hundred, with the longest texts.
  await gateway.prisma.$executeRaw`INSERT INTO "Category" (name, description)
    SELECT rpad('Category ' || i, 100, 'x'), repeat('🐈"', 500) FROM generate_series(1, 200) i`
  await gateway.prisma.$executeRaw`INSERT INTO "Pet" (name, "categoryId", status)
    SELECT rpad('Pet ' || i, 100, 'x'), 1 + i % 100, (ARRAY['available', 'pending', 'sold'])[1 + i % 3]::"PetStatus" FROM generate_series(1, 10000) i`
  await gateway.prisma.$executeRaw`INSERT INTO "Order" ("petId", quantity, "shipDate", complete)
    SELECT 1 + i % 300, i, '2026-01-01'::timestamptz + i * interval '1 minute', i % 2 = 0 FROM generate_series(1, 30000) i`
  await gateway.prisma.$executeRaw`ANALYZE`
  for (let i = 0; i < 20; i++)
    await send({ query: '{ categories(limit: 20) { etag pets(limit: 20) { name } } }', variables: {} })
})
afterAll(() => gateway.close())

const requestOf = ({ query, variables }: Pick<LargeDocument, 'query' | 'variables'>): FuzzRequest => ({
  method: 'POST',
  target: '/graphql',
  headers: { 'content-type': 'application/json', 'x-api-key': gateway.key },
  body: json({ query, variables }),
})

let count = 0
/** Sends it as a document that the gateway does not know yet. */
async function send(
  { query, variables }: Pick<LargeDocument, 'query' | 'variables'>,
  collection?: Collection,
): Promise<Work> {
  const work = await watch(gateway, requestOf({ query: `${query}#${count++}`, variables }), collection)
  const body = JSON.parse(work.payload)
  assertHealthy(gateway, [work.status], messagesOf({ body }))
  return work
}

/** Figures of a document as parts of what is allowed, and what they say in an error. */
const bounds = {
  unit: {
    title: `a unit buys at most ${MOST_UNIT_MS} ms of processor time, whatever a document selects`,
    collection: 'minor',
    part: ({ time, units }: Work, slow: number) => time / units / slow / MOST_UNIT_MS,
  },
  blocked: {
    title: `no document keeps the event loop for more than ${MOST_BLOCKED_MS} ms`,
    collection: 'minor',
    part: ({ blocked }: Work, slow: number) => blocked / slow / MOST_BLOCKED_MS,
  },
  memory: {
    title: `no document takes more than ${MOST_MB} MB of memory`,
    collection: 'major',
    part: ({ memory }: Work) => memory / 1e6 / MOST_MB,
  },
} as const
type Bound = (typeof bounds)[keyof typeof bounds]

const worst = (work: Work, slow: number) => Math.max(...Object.values(bounds).map(({ part }) => part(work, slow)))

const least = (a: Work, b: Work): Work => ({
  ...a,
  time: Math.min(a.time, b.time),
  blocked: Math.min(a.blocked, b.blocked),
  memory: Math.min(a.memory, b.memory),
})

/** The least of several tries, until it is within the bound. */
async function tryOut(document: LargeDocument, { part, collection }: Bound) {
  const key = hash('sha1', json([document.query, document.variables, collection]))
  let { work, slow } = known.get(key) ?? { work: await send(document), slow: 1 }
  for (let round = 1; round < ROUNDS && part(work, slow) > 1; round++) {
    slow = Math.max(slow, slowness())
    if (round >= SURE && part(work, slow) > FAR) break
    work = least(work, await send(document, collection))
  }
  known.set(key, { work, slow })
  return { work, slow }
}

function describe({ time, units, blocked, memory, status }: Work, slow: number) {
  const ms = (value: number) => `${(value / slow).toFixed(1)} ms`
  return [
    `${units} units buy ${ms(time)} of processor time, ${ms(time / units)} each`,
    `the event loop is blocked for ${ms(blocked)}`,
    `${Math.round(memory / 1e6)} MB of memory above the start`,
    `status ${status}`,
    `this machine takes ${slow.toFixed(2)} times as long as a quiet one, which is taken off`,
  ].join('; ')
}

for (const bound of Object.values(bounds)) {
  let failedAt: number | undefined
  fuzz(bound.title, 0.05, largeDocuments(schema), {
    show: (document) => curl(requestOf(document.at(document.tried ?? 1))),
    async run(document) {
      if (failedAt !== undefined && performance.now() - failedAt > SHRINK_MS) return
      for (const size of SIZES) {
        document.tried = size
        const sized = document.at(size)
        const { work, slow } = await tryOut(sized, bound)
        if (bound.part(work, slow) > 1) {
          failedAt ??= performance.now()
          throw new Error(`${describe(work, slow)}.\n${sized.outline}`)
        }
        // A larger one is refused, too, or might never end: what is wrong with this one, another test reports.
        if (work.status !== 200 || worst(work, slow) > FAR) return
      }
    },
  })
}
