import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { operations } from '../../schema/index.js'
import type { Operation } from '../../schema/kit/operations.js'
import { codeSamples } from '../../src/gateway/openapi/code-samples.js'
import { emptyStore } from '../support/calls.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { has, runPrograms } from '../support/programs.js'

let gateway: Gateway
beforeAll(async () => {
  gateway = await openGateway()
})
afterAll(() => gateway.close())
beforeEach(async () => {
  await emptyStore(gateway.prisma)
  await seed(gateway.prisma)
})

const deleting = operations.filter(({ rest }) => rest.method === 'DELETE')
const others = operations.filter((operation) => !deleting.includes(operation))

describe.each(['Shell', 'JavaScript', 'Python'] as const)('the samples in %s', (lang) => {
  /** The requests and responses of the samples of these operations. */
  async function paste(chosen: Operation[], key: string) {
    const { url } = await gateway.listen()
    const samples = chosen.flatMap((operation) => codeSamples(operation, url).filter((sample) => sample.lang === lang))
    gateway.logged.length = 0
    const programs = samples.map(({ source }) => source)
    await runPrograms(lang, programs, { PETSTORE_KEY: key })
    const requests = gateway.logged.map((line) => JSON.parse(line)).filter(({ msg }) => msg === 'request')
    return requests.map(({ operation, status }) => `${operation} ${status}`)
  }

  test.skipIf(!has(lang)).each([
    ['before all others', [...deleting, ...others]],
    ['after all others', [...others, ...deleting]],
  ])('call their operation and succeed with the documented status, with deletes %s', async (_, chosen) => {
    expect(await paste(chosen, gateway.key)).toEqual(
      chosen.map(({ operationId, rest }) => `${operationId} ${rest.status ?? 200}`),
    )
  })

  test.skipIf(!has(lang))('fail visibly on an error, and print its body', async () => {
    await expect(paste(operations.slice(0, 1), 'wrong')).rejects.toThrow('"code":"unauthorized"')
  })
})
