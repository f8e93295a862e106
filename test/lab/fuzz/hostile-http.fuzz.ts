import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Gateway, openGateway } from '../../support/gateway.js'
import { assertHealthy } from './fuzz.js'
import { processorTime } from './work.js'

// What a request holds outside of GraphQL documents is read in time linear in its size, whatever it holds.

let gateway: Gateway
beforeAll(async () => {
  gateway = await openGateway()
})
afterAll(() => gateway.close())

const HEAD = 15_000
const BODY = 120_000

const filled = (length: number, part: (i: number) => string) => {
  let text = ''
  for (let i = 0; text.length < length; i++) text += part(i)
  return text
}
const repeat = (length: number, part: string) => filled(length, () => part)

const LEAST_ROUNDS = 5
/** On a busy machine, V8 takes longer to optimize what is called. */
const MOST_ROUNDS = 50

async function processorTimeOf(call: () => Promise<unknown>) {
  const started = processorTime()
  await call()
  return processorTime() - started
}

/**
 * Compares the least processor times of hostile and harmless calls, by turns. A quadratic reader is slower by more than the
 * factor; a parser is slower with many small values than with a long one.
 */
async function expectFast(call: (hostile: boolean) => Promise<unknown>, factor = 20) {
  let [hostile, harmless] = [Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY]
  for (let round = 0; round < LEAST_ROUNDS || (hostile >= factor * harmless && round < MOST_ROUNDS); round++) {
    hostile = Math.min(hostile, await processorTimeOf(() => call(true)))
    harmless = Math.min(harmless, await processorTimeOf(() => call(false)))
  }
  expect(hostile).toBeLessThan(factor * harmless)
  assertHealthy(gateway, [], [])
}

describe('read in linear time', () => {
  test.each([
    ['a charset of white space', 'content-type', `application/json; charset=${repeat(HEAD, ' ')}x`],
    ['a charset of quotes', 'content-type', `application/json; charset=${repeat(HEAD, '"')}`],
    ['thousands of parameters', 'content-type', `application/json${repeat(HEAD, ';charset=utf-8')}`],
    ['a Bearer key after white space', 'authorization', `Bearer ${repeat(HEAD, ' ')}x`],
    ['a long key', 'x-api-key', `petstore_${repeat(HEAD, 'a')}`],
    ['a long request id', 'x-request-id', repeat(HEAD, 'x')],
    ['thousands of codings', 'content-encoding', repeat(HEAD, 'identity,')],
    ['thousands of proxies', 'x-forwarded-for', repeat(HEAD, '1.1.1.1,')],
    ['thousands of cookies', 'cookie', repeat(HEAD, 'a=b;')],
  ])('the header with %s', async (_, name, value) => {
    const headers = (hostile: boolean) => ({ [hostile ? name : 'x-harmless']: hostile ? value : repeat(HEAD, 'x') })
    await expectFast((hostile) => gateway.patch('/categories/1', '{}', { headers: headers(hostile) }))
  })

  test.each([
    ['thousands of media types', 'accept', `text/html,${repeat(HEAD, 'a/b,')}`],
    ['media types in quotes', 'accept', `text/html,${repeat(HEAD / 2, '"')}${repeat(HEAD / 2, ',')}`],
    ['thousands of codings of a response', 'accept-encoding', repeat(HEAD, 'br,')],
  ])('the header of a page with %s', async (_, name, value) => {
    const headers = { accept: 'text/html', 'x-harmless': repeat(HEAD, 'x') }
    await expectFast((hostile) =>
      gateway.get('/graphql', { headers: hostile ? { accept: 'text/html', [name]: value } : headers }),
    )
  })

  test.each([
    ['thousands of slashes', `/pets${repeat(HEAD, '/')}`],
    ['thousands of segments', `/${repeat(HEAD, 'a/')}`],
    ['thousands of parents', `/${repeat(HEAD, '../')}pets`],
    ['a path that needs decoding', `/pets/${repeat(HEAD, '%31')}`],
    ['thousands of ids', `/pets?${repeat(HEAD, 'id=1&')}`],
    ['thousands of parameters', `/pets?${filled(HEAD, (i) => `a${i}=1&`)}`],
    ['nothing but separators', `/pets?${repeat(HEAD, '&')}`],
    ['a long number', `/pets?limit=${repeat(HEAD, '1')}`],
    ['broken percent-encoding', `/pets?limit=${repeat(HEAD, '%')}`],
  ])('the target with %s', async (_, target) => {
    await expectFast((hostile) => gateway.get(hostile ? target : '/pets'))
  })

  // The last number has so many digits that the exact parser reads the body.
  test.each([
    ['thousands of unknown fields', `{${filled(BODY, (i) => `"k${i}":1,`)}"x":1234567890123456}`],
    ['one field thousands of times', `{${repeat(BODY, '"name":"x",')}"name":1234567890123456}`],
    ['a long number', `{"name":${repeat(BODY, '9')}}`],
    ['thousands of long numbers', `{"name":[${repeat(BODY, '1234567890123456,')}1]}`],
    ['a string of escapes', `{"name":"${repeat(BODY, '\\u0041')}1234567890123456"}`],
    ['a name of white space', `{"name":"${repeat(BODY, ' ')}"}`],
    ['a long name of a field', `{"${repeat(BODY, 'k')}":1234567890123456}`],
    ['objects that nest', `{"name":${repeat(BODY, '{"a":')}`],
    ['a long date', `{"shipDate":"${repeat(BODY, '1')}"}`],
  ])('the body with %s', async (_, body) => {
    const harmless = `{"name":"${repeat(BODY, 'x')}"}`
    await expectFast((hostile) => gateway.post('/store/orders', hostile ? body : harmless), 200)
  })
})
