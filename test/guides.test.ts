import { beforeEach, describe, expect, test } from 'vitest'
import { seed } from '../prisma/seed.js'
import { MAX_TOTAL } from '../schema/kit/context.js'
import { catalogue } from '../schema/kit/errors.js'
import { DEFAULT_LIMIT, MAX_BATCH, MAX_INT, MAX_LIMIT } from '../schema/kit/input/rules.js'
import { plans } from '../schema/kit/plans.js'
import { EXAMPLE_TIME, exampleWindows } from '../schema/kit/quota.js'
import { DAY_MS, GRACE_MS, STRIKES_MS, setRateLimitHeaders } from '../src/engines/rate-limit/index.js'
import { ADMISSION_LIMITS, LARGE_SHARE } from '../src/gateway/admission/index.js'
import { LETTERS_PER_UNIT } from '../src/gateway/graphql/cost.js'
import { MAX_FREE_BYTES, MAX_FREE_REQUEST, MAX_FREE_TOKENS } from '../src/gateway/graphql/limits.js'
import { STALL_MS } from '../src/gateway/http/response.js'
import { MAX_ANSWER, MAX_BATCH_ANSWER, MAX_KEY } from '../src/gateway/idempotency/index.js'
import { addressSubject } from '../src/gateway/keys/index.js'
import { readGuides, readIntroduction } from '../src/gateway/openapi/guides.js'
import { stabilities } from '../src/gateway/openapi/operation.js'
import { settings } from '../src/settings.js'
import { emptyStore, times } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'
import { blocks, guide, guides as texts } from './support/guides.js'
import { rowsOf } from './support/markdown.js'

// The base URL of the guides, so that this gateway returns exactly what they show.
const baseUrl = 'https://petstore.example/v1'
/** The cells of each row of a guide's only table. */
const table = (text: string) => rowsOf(text.split('\n').filter((line) => line.startsWith('|')))
const figure = new Intl.NumberFormat('en-US').format

const gateway = await sharedGateway({ env: { BASE_URL: baseUrl } })
await seed(gateway.prisma)

describe('the examples', () => {
  const headersOf = (name: string) =>
    Object.fromEntries(
      (blocks(guide(name), 'http')[0] ?? '')
        .trim()
        .split('\n')
        .map((line) => /^([\w-]+): (.*)$/.exec(line)?.slice(1) ?? [])
        .map(([header = '', value]) => [header.toLowerCase(), value]),
    )

  test('with headers: the gateway sends the same headers', async () => {
    const headers: Record<string, string> = {}
    setRateLimitHeaders(
      headers,
      { at: EXAMPLE_TIME, outcome: 'allowed', cost: 1, windows: exampleWindows, refusedBy: [] },
      false,
    )
    expect(headersOf('rate-limit-headers')).toEqual(headers)
    const page = await gateway.get('/pets?limit=5')
    expect(Object.fromEntries(page.headers)).toMatchObject(headersOf('lists'))
    const deprecated = await gateway.get('/pets/1')
    expect(Object.fromEntries(deprecated.headers)).toMatchObject(headersOf('versions'))
  })

  test('of the introduction: the gateway returns the same response', async () => {
    const text = readIntroduction({ baseUrl, sunset: gateway.config.PET_BY_ID_SUNSET })
    const [, url = ''] = /'(http\S+)'/.exec(blocks(text, 'sh')[0] ?? '') ?? []
    const [head = '', body = ''] = (blocks(text, 'http')[0] ?? '').split('\n\n')
    const { key } = await gateway.createKey({ plan: 'Free' })
    const found = await gateway.get(url.slice(baseUrl.length), { key })
    expect(`HTTP/1.1 ${found.status} OK`).toBe(head.split('\n')[0])
    for (const [, name = '', value] of head.matchAll(/^([\w-]+): (.*)$/gm))
      expect([name, found.headers.get(name)]).toEqual([name, value])
    expect(found.body).toEqual(JSON.parse(body))
  })

  test('with a body: the gateway returns the same body', async () => {
    const [shown = ''] = blocks(guide('errors'), 'json')
    expect((await gateway.get('/pets/999')).body).toEqual(JSON.parse(shown))
    const [related = ''] = blocks(guide('lists'), 'json')
    const page = await gateway.get('/pets?limit=1&expand=category&expand=inventory')
    expect(page.body).toEqual(JSON.parse(related))
    const [tooFew = ''] = blocks(guide('selling'), 'json')
    const order = () => gateway.post('/store/orders?takeStock=true', { petId: 4, quantity: 2 })
    expect((await order()).status).toBe(201)
    expect((await order()).body).toEqual(JSON.parse(tooFew))
  })

  test('in GraphQL: they work', async () => {
    for (const name of ['selling', 'batches'])
      for (const query of blocks(guide(name), 'graphql')) {
        const { body } = await gateway.graphql(query, { orderId: 5 })
        expect([name, body.errors]).toEqual([name, undefined])
      }
  })
})

/** Documents that each exceed one limit. */
const tooMuch = {
  depth: `{ pet(petId: 1) { ${'category { pets { '.repeat(6)} name ${'} } '.repeat(6)} } }`,
  introspectionDepth: `{ __type(name: "Pet") { fields { type { ${'ofType { '.repeat(20)} name ${'} '.repeat(20)} } } } }`,
  tokens: `{ ${'__typename '.repeat(2000)} }`,
  aliases: `{ ${times(101, (i) => `a${i}: __typename`).join(' ')} }`,
  introspectionAliases:
    '{ __schema { a: description b: description c: description d: description e: description f: description } }',
  objects: '{ pets(limit: 100) { category { pets(limit: 100) { name } } } }',
  totals: '{ categories(limit: 100) { petsConnection { totalCount } } petsConnection { totalCount } }',
}

describe('the figures in the guides match the code', () => {
  test('for every plan', () => {
    const documented = table(guide('limits')).filter(([plan]) => plan !== 'Enterprise')
    expect(documented).toEqual(
      Object.entries(plans).flatMap(([plan, limits]) =>
        limits ? [[plan, figure(limits.minute), figure(limits.day)]] : [],
      ),
    )
  })

  test('for every price of related objects', async () => {
    const prices = table(guide('lists')).filter(([request = '']) => /^`GET \S+limit=\d+&expand=/.test(request))
    expect(prices).toHaveLength(3)
    for (const [request = '', , cost] of prices) {
      const { headers } = await gateway.get(request.slice(5, -1))
      expect([request, headers.get('x-ratelimit-cost')]).toEqual([request, cost])
    }
  })

  test('for every error', () => {
    const documented = table(guide('errors')).map(([status, code]) => [Number(status), code])
    expect(documented).toEqual(Object.entries(catalogue).map(([code, { status }]) => [status, `\`${code}\``]))
  })

  test('for every stability, with the text of the reference', () => {
    for (const [mark, meaning] of Object.entries(stabilities))
      expect(guide('versions')).toContain(`- **${mark}**: ${meaning}.`)
  })

  test('for everything else, and there are no other figures', async () => {
    const { MAX_BODY_BYTES, BAN_AFTER, BAN_SECONDS } = settings.parse({})
    /** The limit that the error message of a document names. */
    const most = async (document: string) => {
      const { message } = (await gateway.graphql(document)).body.errors[0]
      return figure(Number(/(?:at most|deeper than|more than) (\d+)/.exec(message)?.[1]))
    }
    const phrases: Record<string, string[]> = {
      authentication: [`by address, ${addressSubject('').windows[0]?.limit} a minute`, 'within 10 seconds'],
      limits: [
        'A REST request costs 1.',
        `at most ${ADMISSION_LIMITS.share} requests of one key`,
        `no more than ${LARGE_SHARE} together`,
        'more than 100 objects',
        'request has cost: 0 if',
        '600 times a minute',
        `${MAX_BODY_BYTES / 1024} KiB`,
      ],
      'rate-limit-headers': ['if it is 0'],
      'backing-off': ['200 calls', `read nothing for ${STALL_MS / 1000} seconds`],
      bans: [
        `more than ${GRACE_MS / 1000} second after`,
        `${BAN_AFTER} strikes within a minute ban the key for ${BAN_SECONDS / 60} minutes`,
        `up to ${DAY_MS / 3_600_000} hours`,
        'is 0',
      ],
      errors: ['1 to 128 printable'],
      'safe-retries': [
        `1 to ${MAX_KEY} printable`,
        'kept for 24 hours',
        `up to ${MAX_ANSWER / 1024} KiB`,
        `up to ${MAX_BATCH_ANSWER / 1024} KiB`,
      ],
      selling: [
        'if 20 clients buy one of ten pieces',
        'they send 20 requests',
        `up to ${MAX_BATCH} stocks`,
        'kept for 24 hours',
        `from 0 to ${figure(MAX_INT)}`,
      ],
      lists: [
        `several times, at most ${MAX_LIMIT}:`,
        `on a page, 1 to ${MAX_LIMIT} (default: ${DEFAULT_LIMIT}). With ids, the default is ${MAX_LIMIT}.`,
        `exact up to ${figure(MAX_TOTAL)}`,
        'A list costs 1 for each 100 objects',
        'as much as 100 objects',
        `null above ${figure(MAX_TOTAL)}`,
      ],
      batches: [
        `take 1 to ${MAX_BATCH} items`,
        'costs 1 per ten items',
        '100 items cost 10',
        'Each costs 1,',
        'costs 2 per hundred rows',
        `up to ${await most(tooMuch.aliases)} things`,
      ],
      versions: [settings.parse({}).PET_BY_ID_SUNSET.toISOString().slice(0, 10)],
      'rest-and-graphql': [
        'and at least 1:',
        'divided by 100.',
        `divided by ${figure(LETTERS_PER_UNIT)}.`,
        'costs 1, costs 5, and costs 3.',
        'counts 1 per ten items',
        'exceeds a limit costs 1.',
        'returns 400 and costs 1;',
        '600 times a minute',
        `at most ${MAX_FREE_BYTES / 1024} KiB and ${MAX_FREE_TOKENS} tokens,`,
        `at most ${MAX_FREE_REQUEST / 1024} KiB. A larger one costs 1,`,
        'longer than 8 MiB',
        'longer than 10 seconds',
      ],
    }
    expect(STRIKES_MS).toBe(60_000)
    const limits = table(guide('rest-and-graphql')).flat().join(' ')
    for (const document of Object.values(tooMuch)) expect(limits).toContain(await most(document))
    for (const [file, text] of texts) {
      // On one line, without code, URLs, tables, RFCs and status codes.
      let prose = text
        .replace(/^```[\s\S]*?^```$|^\|.*$|`[^`\n]*`|\]\([^)]*\)|draft-[\w-]+|RFC \d+/gm, '')
        .replace(/\s+/g, ' ')
      for (const phrase of phrases[file.replace(/^\d+-|\.md$/g, '')] ?? []) {
        expect(prose, file).toContain(phrase)
        prose = prose.replace(phrase, '')
      }
      expect(prose.replace(/\b[2345]\d\d\b/g, '').match(/.{0,40}\d.{0,40}/g), file).toBeNull()
    }
  })
})

describe('the table of REST and GraphQL', () => {
  async function restore() {
    await emptyStore(gateway.prisma)
    await seed(gateway.prisma)
  }
  beforeEach(restore)

  test.each(table(guide('rest-and-graphql')).filter(([rest]) => /^`[A-Z]/.test(rest ?? '')))(
    '%s does the same as %s',
    async (rest = '', graphql = '') => {
      const [, method = '', path = '', body] = /^`(\w+) (\S+)`(?: with `(.*)`)?$/.exec(rest) ?? []
      const answer = await gateway.call(method, path, { body })
      await restore()
      const { data, errors } = (await gateway.graphql(graphql.slice(1, -1))).body
      expect(errors).toBeUndefined()
      if (answer.status === 204) expect(Object.values(data)[0]).toBeTruthy()
      else expect([answer.body].flat()).toMatchObject(Object.values(data).flat() as object[])
    },
  )
})

describe('the guides in the OpenAPI document', () => {
  const published = readGuides({ baseUrl: 'https://api.test/v2', sunset: new Date('2031-02-03') })

  test('are sections, in the order of the files', () => {
    const titles = [...texts].map(([, text]) => /^# (.*)$/m.exec(text)?.[1])
    expect([...published.matchAll(/^## (.*)$/gm)].map(([, title]) => title)).toEqual(titles)
    expect(published).not.toMatch(/^# /m)
  })

  test('have the base URL and the sunset date of the service', () => {
    expect(published).not.toMatch(/petstore\.example|2030/)
    expect(published).toContain('Sunset: Mon, 03 Feb 2031 00:00:00 GMT')
  })
})
