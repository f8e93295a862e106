import { afterAll, describe, expect, onTestFinished, test } from 'vitest'
import { seed } from '../prisma/seed.js'
import { operations } from '../schema/index.js'
import { fill } from '../schema/kit/operations.js'
import { createLog } from '../src/engines/observe/log.js'
import { createApp } from '../src/gateway/app.js'
import type { ResponseObject, Schema } from '../src/gateway/openapi/document.js'
import { createOpenApi, type OperationObject } from '../src/gateway/openapi/index.js'
import { readSettings } from '../src/settings.js'
import { emptyStore } from './support/calls.js'
import { resolved } from './support/contract.js'
import { databaseAt } from './support/database.js'
import { type Answer, Gateway, sharedGateway } from './support/gateway.js'
import { testDatabaseUrl } from './support/postgres.js'

// Sends the examples of the document to a gateway with the sample data, and provokes every error that it lists. All tests
// derive from the document, so a new operation is tested too. Headers and schemas are compared with every response of every
// test (see support/contract.ts).

const { BASE_URL: baseUrl, PET_BY_ID_SUNSET: sunset } = readSettings({})
const document = createOpenApi({ baseUrl, sunset })

interface Described {
  name: string
  method: string
  path: string
  operation: OperationObject
  status: number
  response: ResponseObject
}

const responseTo = ({ responses }: OperationObject, status: string | number) =>
  resolved(document.components.responses, responses[status] as ResponseObject)

const described = Object.entries(document.paths).flatMap(([path, item]) =>
  Object.entries(item).map(([method, operation]): Described => {
    const status = Number(Object.keys(operation.responses).find((code) => code < '300'))
    const response = responseTo(operation, status)
    return { name: operation.operationId, method: method.toUpperCase(), path, operation, status, response }
  }),
)

/** The examples of a parameter or a media type, by name. */
const examplesOf = ({ example, examples }: { example?: unknown; examples?: Record<string, { value: unknown }> } = {}) =>
  Object.entries(examples ?? (example === undefined ? {} : { example: { value: example } })).map(
    ([name, { value }]) => ({ name, value }),
  )

/** An example request of the document. */
interface Shown {
  label: string
  /** Of parameters. */
  values: Record<string, unknown>
  /** The name of the body's example. */
  example?: string
  type?: string
  body?: unknown
}

/** Every body with the required parameters, then each other parameter example alone, then all parameters together. */
function shownBy({ parameters = [], requestBody }: OperationObject): Shown[] {
  const first = (from: typeof parameters) =>
    Object.fromEntries(from.map((parameter) => [parameter.name, examplesOf(parameter)[0]?.value]))
  /** What a parameter needs beside it, as its description says. */
  const beside = ({ description = '' }: (typeof parameters)[number]) =>
    first(parameters.filter(({ name }) => name === 'sort' && /`sort`/.test(description)))
  const values = first(parameters.filter(({ required }) => required))
  const bodies = Object.entries(requestBody?.content ?? {}).flatMap(([type, media]) =>
    examplesOf(media).map(({ name, value }) => ({
      label: `${type} ${name}`,
      values,
      example: name,
      type,
      body: value,
    })),
  )
  const [plain, ...others] = bodies.length > 0 ? bodies : [{ label: 'what is required', values }]
  const single = parameters.flatMap((parameter) =>
    examplesOf(parameter)
      .slice(parameter.required ? 1 : 0)
      .map(({ name, value }) => ({
        ...plain,
        label: `${parameter.name} ${name}`,
        values: { ...values, ...beside(parameter), [parameter.name]: value },
      })),
  )
  // A page begins at one place.
  const all = parameters.filter(({ name }) => name !== 'after' && name !== 'cursor')
  const together = { ...plain, label: 'all parameters', values: first(all) }
  return [plain as Shown, ...others, ...single, ...(single.length > 1 ? [together] : [])]
}

const gateway = await sharedGateway()
const { database } = gateway
await seed(database.prisma)
// More gateways: after the sunset date, with an address over its limit, and without a database.
const shared = { ...database, close: async () => {} }
const late = await sharedGateway({ database: shared, env: { PET_BY_ID_SUNSET: '2026-01-01' } })
const flooded = await sharedGateway({ database: shared })
const app = createApp({
  settings: gateway.config,
  rateLimiter: gateway.limits,
  database: databaseAt('postgresql://127.0.0.1:1/nowhere'),
  log: createLog('silent'),
})
const away = new Gateway({ ...gateway, app })
afterAll(() => app.close())

interface Sending extends Partial<Shown> {
  to?: Gateway
  key?: string | null
  /** Query parameters beyond those of the document. */
  extra?: Record<string, string>
}

function send({ method, path, operation }: Described, sending: Sending): Promise<Answer> {
  const { to = gateway, values = {}, extra, key, type, body } = sending
  const query = new URLSearchParams(extra)
  const traceparent = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01'
  const headers: Record<string, string> = { traceparent, ...(type && { 'content-type': type }) }
  for (const { name, in: place } of operation.parameters ?? [])
    if (place === 'query' && name in values)
      for (const value of [values[name]].flat()) query.append(name, String(value))
    else if (place === 'header' && name in values) headers[name] = String(values[name])
  const target = fill(path, values) + (query.size > 0 ? `?${query}` : '')
  return to.call(method, target, { key, body, headers })
}

const NOTHING = 999_999

/** The same request for other ids. */
const withIds = (shown: Shown, id: number): Shown => ({
  ...shown,
  values: Object.fromEntries(Object.keys(shown.values).map((name) => [name, id])),
})

/** A body whose ids do not exist. */
function referring({ operation }: Described, body: unknown) {
  const schema = Object.values(operation.requestBody?.content ?? {})[0]?.schema
  const { properties = {} } = resolved(document.components.schemas, (schema?.items ?? schema) as Schema)
  // An item of a batch is named by its id.
  const ids = Object.keys(properties).filter((name) => properties[name]?.format === 'int64' && name !== 'id')
  const refer = (item: object) => ({ ...item, ...Object.fromEntries(ids.map((name) => [name, NOTHING])) })
  return Array.isArray(body) ? body.map(refer) : refer(body as object)
}

/** The items of a batch that would change what does not exist. */
const missing = (body: unknown) =>
  Array.isArray(body) ? body.map((item) => ({ ...item, [item.id ? 'id' : 'petId']: NOTHING })) : body

/** A key that has used its only request of the day. */
async function usedUp() {
  const { key } = await gateway.createLimitedKey(1, 1)
  await gateway.get('/pets', { key })
  return key
}

/** A body that gives row 1 the values of another row. */
async function valuesOf({ path, operation }: Described, id: number) {
  const [media] = Object.values(operation.requestBody?.content ?? {})
  const isBatch = Array.isArray(media?.example)
  const { body } = await gateway.get(path.replace(/\{\w+\}$|batch$/, String(id)))
  const names = Object.keys([media?.example].flat()[0] as object)
  const item = Object.fromEntries(names.map((name) => [name, name === 'id' ? 1 : body[name]]))
  return isBatch ? [item] : item
}

interface Provoked {
  answer: Promise<Answer>
  /** Its message, if it has details that the document cannot show. */
  says?: RegExp
}

const free = new Set(operations.filter(({ rest }) => rest.cost === 0).map(({ operationId }) => operationId))

/** A value of which only the type of the fields of that name is kept, however deep. */
const typed = (name: string, value: unknown) =>
  value === undefined
    ? undefined
    : JSON.parse(JSON.stringify(value, (key, field) => (key === name ? typeof field : field)))

// Headers that are sent only with non-default settings, or only on a replay.
const occasional = new Set(['Vary', 'Idempotency-Replayed', 'X-Total-Count'])

// Headers that differ between requests.
const moments: Record<string, RegExp> = {
  'X-RateLimit-Reset': /^\d+$/,
  'X-RateLimit-Cost': /^\d+$/,
  'X-Request-Id': /^[0-9a-f-]{36}$/,
  RateLimit: /t=\d+/g,
  traceparent: /-[\da-f]{16}-/,
  Location: /\d+$/,
  // One example for all.
  ETag: /[\w-]{27}/,
}
const timeless = (header: string, value: string | null) => value?.replace(moments[header] ?? '', '')

describe.each(described.map((about) => [about.name, about] as const))('the examples of %s', (_, about) => {
  const { name, method, operation, status, response } = about
  const answers = examplesOf(response.content?.['application/json'])
  const list = method === 'GET' && answers.some(({ value }) => Array.isArray(value))

  /** As the client whom the examples show: with a Free key, of which one request is used. */
  async function sendAsShown(shown: Shown) {
    const { key } = await gateway.createKey()
    if (free.has(name)) await gateway.get('/categories', { key })
    return send(about, { ...shown, key })
  }

  // Undoes what a write has changed.
  const keepSample = () =>
    onTestFinished(async () => {
      await emptyStore(database.prisma)
      await seed(database.prisma)
    })

  const requests = shownBy(operation).map((shown) => [shown.label, shown] as const)
  test.each(requests)('work as requests and return the documented response: %s', async (_, shown) => {
    if (method !== 'GET') keepSample()
    const { body, ...answer } = await sendAsShown(shown)
    expect([answer.status, body]).toEqual([status, body])
    const example = 'expand' in shown.values ? 'expanded' : shown.example
    const expected = (answers.find((answer) => answer.name === example) ?? answers[0])?.value
    // A created row has a new id, and windows end at another time.
    const assigned = status === 201 ? 'id' : 'reset'
    if (list) expect(body.length, 'rows in prisma/seed.ts that this example asks for').toBeGreaterThan(0)
    else
      expect(typed(assigned, { ...body, key: undefined })).toEqual(
        typed(assigned, { ...(expected as object), key: undefined }),
      )
  })

  if (list && !free.has(name) && !name.startsWith('listUsage'))
    test('are in the sample data', async () => {
      const shown = shownBy(operation).find(({ values }) => 'expand' in values)
      const expanded = shown && (await send(about, { values: { expand: shown.values.expand } }))
      const { body } = await send(about, {})
      for (const { name, value } of answers)
        expect(name === 'expanded' ? expanded?.body : body).toEqual(expect.arrayContaining(value as unknown[]))
    })

  test('have the headers of a real response', async () => {
    if (method !== 'GET') keepSample()
    const [shown] = shownBy(operation)
    // The Link of the example belongs to a page of one item.
    const values = { ...shown?.values, ...(list && { limit: 1 }) }
    const sent = (await sendAsShown({ ...(shown as Shown), values })).headers
    for (const [header, reference] of Object.entries(response.headers)) {
      const { example } = resolved(document.components.headers, reference)
      if (occasional.has(header)) expect(sent.has(header)).toBe(false)
      else expect(timeless(header, sent.get(header)), header).toBe(timeless(header, String(example)))
    }
  })
})

const withKey = (shown: Shown, key: string): Shown => ({
  ...shown,
  values: { ...shown.values, 'Idempotency-Key': key },
})

/** Does something while a request of the gateway's own key with this Idempotency-Key is running elsewhere. */
const whileLocked = <T>(key: string, action: () => Promise<T>) =>
  database.prisma.$transaction(async (transaction) => {
    await transaction.$queryRaw`
      SELECT pg_advisory_xact_lock(hashtextextended(${key}, id))::text FROM "ApiKey" WHERE prefix = ${gateway.key.slice(0, 17)}`
    return action()
  })

/** How to provoke each other response, for any operation that lists it. */
const provocations: Record<string, (about: Described, shown: Shown) => Provoked> = {
  304: (about, shown) => ({ answer: send(about, { ...shown, values: { ...shown.values, 'If-None-Match': '*' } }) }),
  invalid_request: (about, shown) => ({
    answer: send(about, { ...shown, extra: { nonsense: '1' } }),
    says: /nonsense/,
  }),
  unauthorized: (about, shown) => ({ answer: send(about, { ...shown, key: null }) }),
  forbidden: (about, shown) => ({
    answer: gateway.createKey({ access: 'read' }).then(({ key }) => send(about, { ...shown, key })),
  }),
  not_found: (about, shown) => ({
    answer: send(about, { ...withIds(shown, NOTHING), body: missing(shown.body) }),
    says: new RegExp(`${NOTHING}`),
  }),
  // A POST is refused while another one with its key is running. In the sample data, no row with id 2 can be deleted. A change
  // is refused if another row has the value already, which must be unique.
  conflict: (about, shown) => {
    if (about.method === 'POST')
      return { answer: whileLocked('busy', () => send(about, withKey(shown, 'busy'))), says: /still running/ }
    if (about.method === 'DELETE') return { answer: send(about, withIds(shown, 2)), says: /2/ }
    return { answer: valuesOf(about, 2).then((body) => send(about, { ...withIds(shown, 1), body })), says: /taken/ }
  },
  idempotency_mismatch: (about, shown) => ({
    answer: send(about, withKey(shown, 'used')).then(() =>
      send(about, { ...withKey(shown, 'used'), body: `${JSON.stringify(shown.body)} ` }),
    ),
  }),
  precondition_failed: (about, shown) => ({
    answer: send(about, { ...shown, values: { ...shown.values, 'If-Match': '"stale"' } }),
  }),
  gone: (about, shown) => ({ answer: send(about, { ...shown, to: late }) }),
  payload_too_large: (about, shown) => ({
    answer: send(about, { ...shown, body: ' '.repeat(gateway.config.MAX_BODY_BYTES + 1) }),
    says: /131072/,
  }),
  unsupported_media_type: (about, shown) => ({
    answer: send(about, { ...shown, type: 'text/plain' }),
    says: /application\/json/,
  }),
  unknown_reference: (about, shown) => ({
    answer: send(about, { ...shown, body: referring(about, shown.body) }),
    says: new RegExp(`${NOTHING}`),
  }),
  // A free operation never returns 429 for a valid key.
  rate_limited: (about, shown) =>
    free.has(about.name)
      ? {
          answer: flood().then(() => send(about, { ...shown, to: flooded, key: null })),
          says: /without a valid key.* Wait \d+ seconds/,
        }
      : {
          answer: usedUp().then((key) => send(about, { ...shown, key })),
          says: /The limit of 1 request per day is used up. Wait [\d,]+ seconds/,
        },
  key_banned: (about, shown) => ({
    answer: gateway
      .createKey({ bannedUntil: new Date(Date.now() + 60_000) })
      .then(({ key }) => send(about, { ...shown, key })),
    says: /banned until .* Wait \d+ seconds/,
  }),
  unavailable: (about, shown) => ({ answer: send(about, { ...shown, to: away }) }),
}

/** Uses up the minute of an address. */
async function flood() {
  for (let i = 0; i < 60; i++) await flooded.get('/pets', { key: null })
}

interface Refusal {
  code: string
  message: string
  status: number
}

// A 500 is documented but cannot be provoked.
const refusals = described.flatMap((about) =>
  Object.keys(about.operation.responses)
    .filter((status) => Number(status) !== about.status && status !== '500')
    // The embedded database has one session, so that no two transactions run concurrently.
    .filter((status) => !(about.method === 'POST' && status === '409' && !testDatabaseUrl))
    .flatMap((status) => {
      const shown = examplesOf(responseTo(about.operation, status).content?.['application/json'])
      const values = shown.length > 0 ? shown.map(({ value }) => value as Refusal) : [undefined]
      return values.map((refusal) => [about.name, status, refusal?.code ?? status, about, refusal] as const)
    }),
)

test.each(refusals)('%s returns the documented response: %s %s', async (_, status, code, about, refusal) => {
  const provoke = provocations[code]
  if (!provoke) throw new Error(`Nothing here brings about ${status} ${code}.`)
  const { answer, says } = provoke(about, shownBy(about.operation)[0] as Shown)
  const { body, ...got } = await answer
  expect([got.status, body]).toEqual([
    Number(status),
    refusal && { ...refusal, ...(says && { message: expect.stringMatching(says) }) },
  ])
})
