import { describe, expect, onTestFinished, test } from 'vitest'
import { times } from './support/calls.js'
import { openGateway, sharedGateway } from './support/gateway.js'

// What the owner of a key sees of it.

const gateway = await sharedGateway()

const DAY_MS = 86_400_000
const daysAgo = (days: number) => new Date(Math.floor(Date.now() / DAY_MS - days) * DAY_MS)
const dateOf = (day: Date) => day.toISOString().slice(0, 10)

describe('GET /quota', () => {
  test('says what the key is, and nothing of its secret', async () => {
    const expiresAt = new Date(Date.now() + DAY_MS)
    const contact = { owner: 'Ann Lee', email: 'ann@example.com', note: 'Call before noon.' }
    const { key, row } = await gateway.createKey({ name: 'Shop', access: 'read', expiresAt, ...contact })
    const { body, text } = await gateway.get('/quota', { key })
    // Neither the address nor the note: they are for admins.
    expect(body.key).toEqual({
      name: 'Shop',
      owner: 'Ann Lee',
      prefix: row.prefix,
      access: 'read',
      createdAt: row.createdAt.toISOString(),
      expiresAt: expiresAt.toISOString(),
    })
    expect(text).not.toContain(row.hash)
    expect(text).not.toContain(key)
    const query = '{ quota { key { name owner prefix access expiresAt bannedUntil } } }'
    const { data } = (await gateway.graphql(query, {}, { key })).body
    const { createdAt: _, ...shown } = body.key
    expect(data.quota.key).toEqual({ ...shown, bannedUntil: null })
  })

  test('shows a ban to the banned key; one that has ended is none', async () => {
    const bannedUntil = new Date(Date.now() + DAY_MS)
    const banned = await gateway.createKey({ bannedUntil })
    const { status, body } = await gateway.get('/quota', { key: banned.key })
    expect([status, body.key.bannedUntil]).toEqual([200, bannedUntil.toISOString()])
    const past = await gateway.createKey({ bannedUntil: new Date(Date.now() - 1_000) })
    expect((await gateway.get('/quota', { key: past.key })).body.key.bannedUntil).toBeUndefined()
  })
})

describe('GET /quota/usage', () => {
  const none = { requests: 0, refused: 0, cost: 0, outcomes: [] }

  test('has an entry for each day, today first, of the key alone', async () => {
    const { key, row } = await gateway.createKey()
    const other = await gateway.createKey()
    const used = (keyId: number, days: number, requests: number) => ({
      keyId,
      name: 'test',
      day: daysAgo(days),
      requests,
      refusals: 3,
      cost: 2 * requests,
      outcomes: { rate_limited: 2, conflict: 1 },
    })
    const outcomes = [
      { code: 'conflict', requests: 1 },
      { code: 'rate_limited', requests: 2 },
    ]
    await gateway.prisma.apiKeyUsage.createMany({
      data: [used(row.id, 1, 7), used(row.id, 29, 5), used(row.id, 30, 3), used(other.row.id, 2, 9)],
    })
    const { status, body, headers } = await gateway.get('/quota/usage', { key })
    expect([status, body.length, headers.get('x-ratelimit-cost')]).toEqual([200, 30, '1'])
    expect(body.map(({ date }: { date: string }) => date)).toEqual(times(30, (i) => dateOf(daysAgo(i))))
    expect(body[1]).toEqual({ date: dateOf(daysAgo(1)), requests: 7, refused: 3, cost: 14, outcomes })
    expect(body[29]).toEqual({ date: dateOf(daysAgo(29)), requests: 5, refused: 3, cost: 10, outcomes })
    expect(body[2]).toEqual({ date: dateOf(daysAgo(2)), ...none })
    expect((await gateway.get('/quota/usage?days=90', { key })).body[30].requests).toBe(3)
    const query = '{ usage(days: 2) { requests outcomes { code requests } } }'
    const { data } = (await gateway.graphql(query, {}, { key })).body
    expect(data.usage).toEqual([
      { requests: 0, outcomes: [] },
      { requests: 7, outcomes },
    ])
  })

  test('weighs as many objects as days in GraphQL', async () => {
    const fields = times(95, (i) => `a${i}: date`).join(' ')
    const cost = async (days: string) =>
      (await gateway.graphql(`{ usage${days} { ${fields} } }`)).headers.get('x-ratelimit-cost')
    expect([await cost('(days: 90)'), await cost(''), await cost('(days: 1)')]).toEqual(['9', '3', '1'])
  })

  test('weighs the errors of a day as two objects, and can be refused for as many as there are codes', async () => {
    const ask = (alias: string, length: number) =>
      gateway.graphql(`{ usage(days: 90) { outcomes { ${times(length, (i) => `${alias}${i}: code`).join(' ')} } } }`)
    expect((await ask('a', 1)).headers.get('x-ratelimit-cost')).toBe('3')
    expect((await ask('a', 20)).headers.get('x-ratelimit-cost')).toBe('5')
    expect((await ask('a', 52)).body.errors).toBeUndefined()
    expect((await ask('a', 53)).body.errors[0].message).toMatch(/could complete 100261 fields/)
  })

  test('shows figures beyond an Int as the greatest one', async () => {
    const { key, row } = await gateway.createKey()
    const data = { keyId: row.id, name: 'test', day: daysAgo(0), requests: 2n ** 40n, refusals: 0, cost: 2n ** 40n }
    await gateway.prisma.apiKeyUsage.create({ data })
    const { body } = await gateway.get('/quota/usage?days=1', { key })
    expect(body).toEqual([
      { date: dateOf(daysAgo(0)), requests: 2_147_483_647, refused: 0, cost: 2_147_483_647, outcomes: [] },
    ])
  })

  test.each(['0', '91', 'x', ''])('refuses days=%s', async (days) => {
    expect((await gateway.get(`/quota/usage?days=${days}`)).status).toBe(400)
  })

  test('knows the errors of a request by their codes within a minute', async () => {
    const gateway = await openGateway()
    onTestFinished(() => gateway.close())
    const { key } = await gateway.createKey()
    await gateway.get('/pets/999', { key })
    await gateway.get('/pets?limit=0', { key })
    await gateway.post('/pets', '{', { key })
    await gateway.app.close()
    for (const path of ['/quota/usage?days=1', '/quota/usage/hours?hours=1'])
      expect((await gateway.get(path, { key })).body).toMatchObject([
        {
          requests: 3,
          refused: 3,
          outcomes: [
            { code: 'invalid_request', requests: 2 },
            { code: 'not_found', requests: 1 },
          ],
        },
      ])
  })

  test('shows nothing without a valid key', async () => {
    for (const key of [null, 'petstore_00000000'])
      expect((await gateway.get('/quota/usage', { key })).body.code).toBe('unauthorized')
    const revoked = await gateway.createKey({ revokedAt: new Date() })
    expect((await gateway.get('/quota/usage', { key: revoked.key })).body.code).toBe('unauthorized')
  })
})

describe('GET /quota/usage/hours', () => {
  const hoursAgo = (hours: number) => new Date(Math.floor(Date.now() / 3_600_000 - hours) * 3_600_000)

  test('has an entry for each hour, this one first, of the key alone', async () => {
    const { key, row } = await gateway.createKey()
    const other = await gateway.createKey()
    const used = (keyId: number, hours: number, requests: number) => ({
      keyId,
      name: 'test',
      hour: hoursAgo(hours),
      requests,
      refusals: 1,
      cost: 2 * requests,
      outcomes: { rate_limited: 1 },
    })
    await gateway.prisma.apiKeyUsageHour.createMany({
      data: [
        used(row.id, 1, 7),
        used(row.id, 23, 5),
        used(row.id, 24, 3),
        used(row.id, 71, 2),
        used(other.row.id, 2, 9),
      ],
    })
    const { status, body, headers } = await gateway.get('/quota/usage/hours', { key })
    expect([status, body.length, headers.get('x-ratelimit-cost')]).toEqual([200, 24, '1'])
    expect(body.map(({ hour }: { hour: string }) => hour)).toEqual(times(24, (i) => hoursAgo(i).toISOString()))
    const outcomes = [{ code: 'rate_limited', requests: 1 }]
    const hour = (ago: number) => hoursAgo(ago).toISOString()
    expect(body[1]).toEqual({ hour: hour(1), requests: 7, refused: 1, cost: 14, outcomes })
    expect(body[2]).toEqual({ hour: hour(2), requests: 0, refused: 0, cost: 0, outcomes: [] })
    expect(body[23]).toEqual({ hour: hour(23), requests: 5, refused: 1, cost: 10, outcomes })
    const all = (await gateway.get('/quota/usage/hours?hours=72', { key })).body
    expect([all.length, all[24].requests, all[71].requests]).toEqual([72, 3, 2])
    const { data } = (await gateway.graphql('{ usageByHour(hours: 2) { hour requests } }', {}, { key })).body
    expect(data.usageByHour).toEqual([
      { hour: hour(0), requests: 0 },
      { hour: hour(1), requests: 7 },
    ])
    const days = (await gateway.get('/quota/usage?days=4', { key })).body
    expect(days.reduce((sum: number, { requests }: { requests: number }) => sum + requests, 0)).toBe(17)
  })

  test.each(['0', '73', '1.5', 'x', ''])('refuses hours=%s', async (hours) => {
    expect((await gateway.get(`/quota/usage/hours?hours=${hours}`)).status).toBe(400)
  })
})
