import stringWidth from 'string-width'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { type Gateway, openGateway } from './support/gateway.js'
import { testDatabaseUrl, useClient, waitingForLocks } from './support/postgres.js'
import { TcpProxy } from './support/proxy.js'
import { runKeys } from './support/remote.js'

// `npm run keys`, beside a gateway that uses the same database. Most commands run in this process, because to start one for
// each takes most of the time.

let gateway: Gateway
let env: Record<string, string>
beforeAll(async () => {
  gateway = await openGateway({ keyTtlMs: 50 })
  env = {
    ...gateway.database.env,
    ...(process.env.TEST_REDIS_URL ? { REDIS_URL: process.env.TEST_REDIS_URL } : {}),
  }
})
afterAll(() => gateway.close())

const keys = (...args: string[]) => runKeys(env, ...args)

/** The JSON value that a command prints. */
async function json(...args: string[]) {
  const { code, stdout, stderr } = await keys(...args, '--json')
  expect([code, stderr.replace(/Without REDIS_URL.*\n/, '')]).toEqual([0, ''])
  return JSON.parse(stdout)
}

const status = async (key: string) => (await gateway.get('/pets', { key })).status

/** Waits: the gateway reads a changed key only after a while. */
const eventually = (ask: () => Promise<unknown>) => expect.poll(ask)

describe('npm run keys', () => {
  test('names and sources from the database are printed without anything that a terminal obeys or hides', async () => {
    const name = 'a\x1b[31m\x9b2J\x07\x7f\n│ forged\u202eright\u2066\u2028\u{e0041}z'
    const shown = 'a\\u001b[31m\\u009b2J\\u0007\\u007f\\u000a│ forged\\u202eright\\u2066\\u2028\\udb40\\udc41z'
    const { row } = await gateway.createKey({ name, owner: name, note: name })
    await gateway.prisma.$transaction([
      gateway.prisma.$executeRaw`SELECT set_config('petstore.source', 'me\x1b[0m', true)`,
      gateway.prisma.apiKey.update({ where: { id: row.id }, data: { name: `${name}.`, plan: 'Pro' } }),
    ])
    await gateway.prisma.apiKeyUsage.create({
      data: { keyId: row.id, name, day: new Date(), requests: 1, refusals: 0, cost: 1 },
    })
    const id = String(row.id)
    const commands = [['list'], ['show', id], ['usage'], ['usage', '--days', '2'], ['usage', id, '--days', '2']]
    for (const command of [...commands, ['history'], ['history', id]]) {
      const { code, stdout } = await keys(...command)
      expect(code).toBe(0)
      expect(stdout.replaceAll('\n', ''), command.join(' ')).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      expect(stdout, command.join(' ')).toContain('a\\u001b[31m')
      const json = (await keys(...command, '--json')).stdout.trimEnd()
      expect(json).not.toMatch(/[\p{C}\p{Zl}\p{Zp}]/u)
      if (command[0] !== 'history')
        expect(JSON.stringify(JSON.parse(json))).toContain(JSON.stringify(name).slice(1, -1))
    }
    const unwrapped = (await keys('show', id)).stdout.replaceAll(/ *│\n│ +│ /g, ' ')
    for (const value of [`${shown}. `, `${shown} `]) expect(unwrapped).toContain(`│ ${value}`)
    expect((await keys('history', id)).stdout).toContain('me\\u001b[0m')
    await gateway.prisma.apiKey.delete({ where: { id: row.id } })
  })

  test('names, owners and notes have joiners, as Persian words and some emoji do, and are printed with them', async () => {
    const [name, owner] = ['👩\u200d🌾', 'می\u200cخواهم']
    const { id } = await json(
      'create',
      '--name',
      name,
      '--plan',
      'Free',
      '--owner',
      owner,
      '--note',
      `${name} ${owner}`,
    )
    expect((await keys('show', name)).stdout).toContain(`${name} ${owner}`)
    expect(await json('list', '--owner', owner)).toMatchObject([{ id, name, owner }])
  })

  test.runIf(testDatabaseUrl)('say in one line that the database is gone while they wait for it', async () => {
    const { url } = gateway.database
    const admin = await useClient(url)
    const proxy = await TcpProxy.open(url)
    const { row } = await gateway.createKey()
    await admin.query(`BEGIN; SELECT FROM "ApiKey" WHERE id = ${row.id} FOR UPDATE`)
    const command = runKeys({ DATABASE_URL: proxy.url }, 'ban', String(row.id))
    await expect.poll(() => waitingForLocks(admin)).toBe(1)
    await proxy.cut()
    const { code, stderr } = await command
    expect([code, stderr]).toEqual([
      1,
      expect.stringMatching(/^Database: .*\nDATABASE_URL: the database ".*" at .* cannot be used: .*terminated.*\n$/),
    ])
  })

  test('history: a name may look like a time', async () => {
    const { id } = await json('create', '--name', '2027-01-31Team', '--plan', 'Free')
    expect((await keys('history', String(id))).stdout).toContain('name 2027-01-31Team')
  })

  test('create: the key works immediately; --json prints one object', async () => {
    const created = await json('create', '--name', ' Ann ', '--plan', 'Pro')
    expect(created).toEqual({
      id: expect.any(Number),
      name: 'Ann',
      plan: 'Pro',
      prefix: expect.stringMatching(/^petstore_[0-9a-f]{8}$/),
      key: expect.stringMatching(/^petstore_[0-9a-f]{48}$/),
    })
    expect(created.key.startsWith(created.prefix)).toBe(true)
    const { headers } = await gateway.get('/pets', { key: created.key })
    expect(headers.get('x-ratelimit-limit')).toBe('300')
    expect(JSON.stringify(await json('list'))).not.toContain(created.key.slice(17))
  })

  test('ban, unban, plan, rotate and revoke take effect on a running gateway', async () => {
    const { id, prefix, key } = await json('create', '--name', 'Bob', '--plan', 'Free')
    expect(await status(key)).toBe(200)
    const before = Date.now()
    const banned = await json('ban', prefix, '--for', '3600')
    expect(Date.parse(banned.bannedUntil)).toBeGreaterThanOrEqual(before + 3_600_000)
    await eventually(async () => (await gateway.get('/pets', { key })).body.code).toBe('key_banned')
    await json('unban', String(id))
    await eventually(() => status(key)).toBe(200)

    await json('plan', String(id), 'Enterprise', '--minute-limit', '7', '--day-limit', '70')
    await eventually(async () => (await gateway.get('/quota', { key })).body.minute.limit).toBe(7)
    expect(await json('show', prefix)).toMatchObject({
      plan: 'Enterprise',
      minuteLimit: 7,
      dayLimit: 70,
      state: 'active',
    })

    const rotated = await json('rotate', prefix, '--grace', '3600')
    const again = await keys('rotate', prefix)
    expect([again.code, again.stderr]).toEqual([
      1,
      expect.stringContaining(
        `Key ${prefix} was replaced by key ${rotated.id} (${rotated.prefix}) already, which is active. To replace that one: npm run keys -- rotate ${rotated.id}\n`,
      ),
    ])
    expect(rotated).toMatchObject({ name: 'Bob', plan: 'Enterprise' })
    expect([await status(key), await status(rotated.key)]).toEqual([200, 200])
    await gateway.prisma.apiKey.update({ where: { id }, data: { expiresAt: new Date(before) } })
    await eventually(() => status(key)).toBe(401)
    expect(await status(rotated.key)).toBe(200)

    expect(await json('revoke', rotated.prefix)).toMatchObject({ state: 'revoked' })
    await eventually(() => status(rotated.key)).toBe(401)
    expect((await keys('rotate', rotated.prefix)).stderr).toMatch(/is revoked and cannot be rotated/)
    // What it was replaced by has ended, so it can be replaced again.
    await json('update', prefix, '--expires', '2090-01-01')
    expect((await keys('rotate', prefix)).stderr).toMatch(/expires at .* Set when the new key expires: --expires/)
    expect(await json('rotate', prefix, '--expires', '2091-01-01')).toMatchObject({ name: 'Bob' })
  })

  test('a key that two admins rotate at the same moment is rotated once', async () => {
    const { id } = await json('create', '--name', 'Both', '--plan', 'Free')
    const answers = await Promise.all([1, 2, 3].map(() => keys('rotate', String(id))))
    expect(answers.map(({ code }) => code).sort()).toEqual([0, 1, 1])
    for (const { code, stderr } of answers)
      if (code) expect(stderr).toMatch(/was changed at the same moment, and is not rotated\.|was replaced by key/)
    expect(await gateway.prisma.apiKey.count({ where: { originId: id } })).toBe(1)
  })

  test.runIf(testDatabaseUrl).each([
    ['rotate', 'is banned', { bannedUntil: new Date(Date.now() + 60_000) }, 'rotated'],
    ['rotate', 'may only read from now on', { access: 'read' }, 'rotated'],
    ['delete', 'is restored', { revokedAt: null }, 'deleted'],
  ] as const)('%s does nothing to a key that %s at the same moment', async (command, _, change, done) => {
    const { row } = await gateway.createKey({ revokedAt: command === 'delete' ? new Date() : null })
    const admin = await useClient(gateway.database.url)
    await admin.query('BEGIN')
    const [[column, value]] = Object.entries(change) as [[string, unknown]]
    await admin.query(`UPDATE "ApiKey" SET "${column}" = $1 WHERE id = $2`, [value, row.id])
    const running = keys(command, String(row.id))
    await expect.poll(() => waitingForLocks(admin)).toBe(1)
    await admin.query('COMMIT')
    const { code, stderr } = await running
    expect([code, stderr]).toEqual([1, expect.stringContaining(`was changed at the same moment, and is not ${done}.`)])
    const { apiKey } = gateway.prisma
    expect(await apiKey.findUnique({ where: { id: row.id } })).toMatchObject({ ...change, replacedById: null })
    expect(await apiKey.count({ where: { originId: row.id } })).toBe(0)
  })

  test('revoke revokes now, also a key that was to end later', async () => {
    const { key, row } = await gateway.createKey({ revokedAt: new Date(Date.now() + 3_600_000) })
    expect(await status(key)).toBe(200)
    const revoked = await json('revoke', String(row.id))
    expect(revoked.state).toBe('revoked')
    await eventually(() => status(key)).toBe(401)
    // Not a second time: when it ended stays.
    expect((await json('revoke', String(row.id))).revokedAt).toBe(revoked.revokedAt)
  })

  test('a command that changes nothing says so', async () => {
    const { id } = await json('create', '--name', 'Same', '--plan', 'Free')
    const note = /^Nothing changes: the key has these values already\.$/m
    const commands = [
      ['unban'],
      ['plan', 'Free'],
      ['access', 'write'],
      ['update', '--name', 'Same', '--expires', 'never'],
    ]
    for (const [name = '', ...args] of commands) expect((await keys(name, String(id), ...args)).stderr).toMatch(note)
    for (const [name = '', ...args] of [['ban'], ['unban'], ['update', '--name', 'Same', '--owner', 'Me'], ['revoke']])
      expect((await keys(name, String(id), ...args)).stderr).not.toMatch(note)
    expect((await keys('revoke', String(id))).stderr).toMatch(note)
  })

  test('create and rotate make keys that never expire', async () => {
    const { id } = await json('create', '--name', 'Long', '--plan', 'Free', '--expires', 'never')
    expect((await json('show', String(id))).expiresAt).toBeNull()
    await json('update', String(id), '--expires', '2090-01-01')
    const next = await json('rotate', String(id), '--expires', 'never')
    expect((await json('show', String(next.id))).expiresAt).toBeNull()
  })

  test('create --access read and access make keys that may only read; rotation keeps the access', async () => {
    const { id, key } = await json('create', '--name', 'Wall', '--plan', 'Free', '--access', 'read')
    const post = async (key: string) => (await gateway.post('/categories', { name: 'Birds' }, { key })).status
    expect([await status(key), await post(key)]).toEqual([200, 403])
    const rotated = await json('rotate', String(id))
    expect([await status(rotated.key), await post(rotated.key)]).toEqual([200, 403])
    expect(await json('access', String(id), 'WRITE')).toMatchObject({ id, access: 'write' })
    await eventually(() => post(key)).toBe(201)
  })

  test('update changes the name and the end of a key, and nothing else', async () => {
    const { id, key } = await json('create', '--name', 'Shop', '--plan', 'Pro', '--expires', '2090-01-01')
    const before = await json('show', String(id))
    const after = await json('update', String(id), '--name', ' Big shop ', '--expires', 'never')
    expect(after).toEqual({ ...before, name: 'Big shop', expiresAt: null })
    expect((await json('update', String(id), '--expires', '2091-01-01')).expiresAt).toBe('2091-01-01T00:00:00.000Z')
    expect(await status(key)).toBe(200)
    const nothing = await keys('update', String(id))
    expect([nothing.code, nothing.stderr]).toEqual([
      1,
      expect.stringContaining('Say what changes: --name, --owner, --email, --note or --expires.'),
    ])
  })

  test('list --name finds keys by a part of their name, in any case; what LIKE takes for a pattern is text', async () => {
    for (const name of ['Zoo 50% off', 'zoo_north', 'Zoo south']) await json('create', '--name', name, '--plan', 'Free')
    const found = async (text: string) => (await json('list', '--name', text)).map(({ name }: { name: string }) => name)
    expect(await found('ZOO')).toEqual(['Zoo 50% off', 'zoo_north', 'Zoo south'])
    expect(await found('zoo_')).toEqual(['zoo_north'])
    expect(await found('0%')).toEqual(['Zoo 50% off'])
    expect(await found('\\')).toEqual([])
  })

  test('owner, email and note are shown, found, copied by a rotation, and removed by an empty text', async () => {
    const contact = { owner: 'Ann Lee', email: 'ann@example.com', note: 'Call before noon.' }
    const options = Object.entries(contact).flatMap(([name, value]) => [`--${name}`, ` ${value} `])
    const { id } = await json('create', '--name', 'Contact', '--plan', 'Free', ...options)
    expect(await json('show', String(id))).toMatchObject(contact)
    const rotated = await json('rotate', String(id))
    expect(await json('show', String(rotated.id))).toMatchObject({ ...contact, originId: id })
    const owned = async (...args: string[]) =>
      (await json('list', '--owner', ...args)).map(({ id }: { id: number }) => id)
    expect([await owned('ANN l'), await owned('ann', '--name', 'Con'), await owned('_')]).toEqual([
      [id, rotated.id],
      [id, rotated.id],
      [],
    ])
    expect((await keys('list', '--owner', 'ann')).stdout).toMatch(/│ Ann Lee +│/)
    expect((await keys('list', '--owner', 'zzz', '--name', 'c')).stdout).toMatch(
      /^None of \d+ keys has "c" in its name and "zzz" in its owner\.$/m,
    )
    const before = await json('show', String(id))
    const removed = await json('update', String(id), '--owner', '', '--email', 'ü@example.com', '--note', ' ')
    expect(removed).toEqual({ ...before, owner: null, email: 'ü@example.com', note: null })
    expect(await owned('ann')).toEqual([rotated.id])
    expect(await json('list', '--email', 'Ü@')).toMatchObject([{ id }])
    expect(await owned('')).toEqual((await json('list')).map(({ id }: { id: number }) => id))
  })

  test.each([
    ['short words', '€'.repeat(100), `${'word 😀 '.repeat(142)}123456`],
    ['wide characters', '漢'.repeat(100), '連絡先 '.repeat(250).trim()],
    ['emoji', 'é'.repeat(100), '🐶'.repeat(1_000)],
    ['a long word', 'x'.repeat(100), `https://example.com/${'y'.repeat(966)} ask Bob first`],
  ])('the longest texts are stored, and shown in whole within 80 columns: %s', async (_, owner, note) => {
    const longest = { owner, email: `a@${'x'.repeat(252)}`, note }
    const options = Object.entries(longest).flatMap(([name, value]) => [`--${name}`, value])
    const { id } = await json('create', '--name', 'Wide', '--plan', 'Free', ...options)
    expect(await json('show', String(id))).toMatchObject(longest)
    const { stdout } = await keys('show', String(id))
    const cells = stdout.split('\n').map((line) => line.split('│')[2]?.trim() ?? '')
    for (const value of Object.values(longest))
      expect(cells.join('').replaceAll(' ', '')).toContain(value.replaceAll(' ', ''))
    await json('update', String(id), '--name', owner)
    const { stdout: events } = await keys('history', String(id))
    expect(events.replaceAll(/\s/g, '')).toContain(`nameWide→${owner}`)
    for (const line of `${stdout}${events}`.split('\n')) expect(stringWidth(line), line).toBeLessThanOrEqual(80)
  })

  test('a second key of a name is made, with a line that says so', async () => {
    const first = await json('create', '--name', 'Twice', '--plan', 'Free')
    const line = `Note: "Twice" is also the name of key ${first.id} (${first.prefix}, active). Tell them apart by id or prefix.\n`
    const second = await keys('create', '--name', 'Twice', '--plan', 'Free')
    expect([second.code, second.stderr]).toEqual([0, expect.stringContaining(line)])
    expect(second.stdout).toMatch(/petstore_\w{48}/)
    await json('revoke', first.prefix)
    const third = await json('create', '--name', 'Once', '--plan', 'Free')
    expect((await keys('update', String(third.id), '--name', 'Twice')).stderr).toContain(
      `"Twice" is also the name of keys ${first.id} (${first.prefix}, revoked), `,
    )
    expect((await keys('update', String(third.id), '--name', 'Twice')).stderr).not.toContain('Note')
  })

  test('show, usage and history take a name that only one key has', async () => {
    const { id, prefix } = await json('create', '--name', 'Only me', '--plan', 'Free')
    expect(await json('show', 'Only me')).toMatchObject({ id })
    expect(await json('usage', 'Only me')).toMatchObject([{ id }])
    expect((await keys('history', 'Only me')).stdout).toContain(`Key ${id}, Only me (${prefix})\n`)
    await json('rotate', prefix)
    for (const command of ['show', 'usage', 'history']) {
      const { code, stdout, stderr } = await keys(command, 'Only me')
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toMatch(
        new RegExp(
          `Several keys have the name "Only me": ${id} \\(${prefix}, active\\), \\d+ .* by its id or prefix\\.$`,
          'm',
        ),
      )
      expect((await keys(command, 'only me')).stderr).toContain(
        'There is no key with the id, prefix or name "only me".',
      )
    }
    // Those that have ended do not count, unless all have.
    await json('revoke', prefix)
    const { id: successor } = await json('show', 'Only me')
    expect(successor).toBeGreaterThan(id)
    await json('revoke', String(successor))
    expect((await keys('show', 'Only me')).stderr).toContain('Several keys have the name "Only me"')
  })

  test('what is an id or a prefix is never taken for a name', async () => {
    const { id, prefix } = await json('create', '--name', 'Itself', '--plan', 'Free')
    for (const text of [String(id), prefix, prefix.slice(9)]) {
      await json('create', '--name', text, '--plan', 'Free')
      expect(await json('show', text)).toMatchObject({ id })
    }
    const gone = await json('create', '--name', 'Gone, too', '--plan', 'Free')
    await gateway.prisma.apiKey.delete({ where: { id: gone.id } })
    for (const text of [String(gone.id), gone.prefix, gone.prefix.slice(9)]) {
      await json('create', '--name', text, '--plan', 'Free')
      for (const command of ['show', 'usage']) {
        const { code, stderr } = await keys(command, text)
        expect([code, stderr]).toEqual([
          1,
          expect.stringContaining(`no key with the id or prefix "${text}". A name that`),
        ])
      }
      expect(await json('history', text)).toMatchObject([{ event: 'created' }, { event: 'deleted' }])
    }
    await json('create', '--name', '1e3', '--plan', 'Free')
    expect(await json('history', '1e3')).toMatchObject([{ event: 'created', name: '1e3' }])
  })

  test.each(['revoke', 'delete', 'rotate', 'plan', 'access', 'ban', 'unban', 'update'])(
    '%s takes no name, and says which keys have it',
    async (command) => {
      const { id, prefix } = await json('create', '--name', `By ${command}`, '--plan', 'Free')
      const before = await json('show', prefix)
      const values: Record<string, string[]> = { plan: ['Pro'], access: ['read'], update: ['--name', 'x'] }
      const { code, stdout, stderr } = await keys(command, `By ${command}`, ...(values[command] ?? []))
      expect([code, stdout]).toEqual([1, ''])
      expect(stderr).toContain(`This command takes no name. Keys with this name: ${id} (${prefix}, active).\n`)
      expect(await json('show', prefix)).toEqual(before)
    },
  )

  test('while two keys of a rotation are valid, show says when the old one was last used', async () => {
    const old = await json('create', '--name', 'Rotated', '--plan', 'Free')
    const { stdout } = await keys('rotate', old.prefix, '--grace', '604800')
    const [key = ''] = /petstore_\w{48}/.exec(stdout) ?? []
    const advice = new RegExp(
      `The old key works until .*Z\\. When it was last used: npm run keys -- show ${old.id}$`,
      'm',
    )
    expect(stdout).toMatch(advice)
    expect([await status(old.key), await status(key)]).toEqual([200, 200])
    const used = async (id: string) => (await json('show', id)).lastUsedAt
    await eventually(() => used(String(old.id))).not.toBeNull()
    await json('revoke', String(old.id))
    await eventually(() => status(old.key)).toBe(401)
    expect(await status(key)).toBe(200)
  })

  test('delete deletes a revoked key with its usage; its history stays', async () => {
    const { id, key, prefix } = await json('create', '--name', 'Gone', '--plan', 'Free')
    const refused = await keys('delete', String(id))
    expect([refused.code, refused.stderr]).toEqual([1, expect.stringContaining(`npm run keys -- revoke ${id}`)])
    await json('revoke', String(id))
    const day = new Date('2026-01-01')
    await gateway.prisma.apiKeyUsage.create({
      data: { keyId: id, name: 'Gone', day, requests: 1, refusals: 0, cost: 1 },
    })
    expect((await keys('delete', String(id))).stdout).toContain(
      `What happened to it stays: npm run keys -- history ${prefix}`,
    )
    expect((await keys('show', String(id))).code).toBe(1)
    expect(await gateway.prisma.apiKeyUsage.count({ where: { keyId: id } })).toBe(0)
    const events = (await json('history')).filter((event: { prefix: string }) => event.prefix === prefix)
    expect(events.map(({ event }: { event: string }) => event)).toEqual(
      expect.arrayContaining(['created', 'revoked', 'deleted']),
    )
    await eventually(() => status(key)).toBe(401)
  })

  test('rotation links the old key and the new one, in the list and in both histories', async () => {
    const old = await json('create', '--name', 'Linked', '--plan', 'Free')
    const rotated = await json('rotate', old.prefix)
    expect(await json('list')).toContainEqual(expect.objectContaining({ id: old.id, replacedById: rotated.id }))
    const history = async (id: number) => (await keys('history', String(id))).stdout
    expect(await history(old.id)).toMatch(new RegExp(`rotated +command line +.*\n.*replaced by key ${rotated.id}\n`))
    expect(await history(rotated.id)).toContain(`replaces key ${old.id}\n`)
  })

  test('--plan takes any case', async () => {
    expect(await json('create', '--name', 'Case', '--plan', 'pro')).toMatchObject({ plan: 'Pro' })
    const { id } = await json('create', '--name', 'Case', '--plan', 'BUSINESS')
    expect(await json('plan', String(id), 'free')).toMatchObject({ plan: 'Free' })
  })

  test('history shows what happened, who did it and each value, within 80 columns', async () => {
    const { id, prefix } = await json('create', '--name', 'x'.repeat(100), '--plan', 'Pro')
    await json('ban', String(id))
    await json('unban', String(id))
    await json('plan', String(id), 'Free')
    await gateway.prisma.apiKey.update({ where: { id }, data: { name: 'Dora' } })
    const events = await json('history', prefix)
    const happened = events.map(({ event, source }: Record<string, string>) => `${event}: ${source}`)
    const commands = ['created', 'banned', 'unbanned', 'changed'].map((event) => `${event}: command line`)
    expect(happened).toEqual([...commands, 'changed: database'])
    expect(events[3]).toMatchObject({ keyId: id, prefix, changes: { plan: ['Pro', 'Free'] } })
    const { stdout } = await keys('history', String(id))
    expect(stdout).toMatch(/^Key \d+, Dora \(petstore_\w{8}\)\nFree, write, active\n\n/)
    expect(stdout).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ {2}changed +command line +plan Pro → Free$/m)
    for (const lines of [stdout, (await keys('history')).stdout])
      expect(lines.split('\n').filter((line) => [...line].length > 80)).toEqual([])
    expect((await keys('history')).stdout).toMatch(new RegExp(`^${id} .*changed +database +Dora$`, 'm'))
  })

  test('rotate of a key that has expired names what replaced it, or how to let it live longer', async () => {
    const { id, prefix } = await json('create', '--name', 'Over', '--plan', 'Free')
    const expire = (key: number) =>
      gateway.prisma.apiKey.update({ where: { id: key }, data: { expiresAt: new Date(Date.now() - 1000) } })
    await expire(id)
    expect((await keys('rotate', String(id))).stderr).toContain(
      `Key ${prefix} is expired and cannot be rotated. Create a new key: npm run keys -- create, or let it live longer: npm run keys -- update ${id} --expires <date>\n`,
    )
    await json('update', String(id), '--expires', 'never')
    const { id: next } = await json('rotate', String(id))
    await expire(id)
    expect((await keys('rotate', String(id))).stderr).toContain(`was replaced by key ${next} `)
    await json('revoke', String(next))
    expect((await keys('rotate', String(next))).stderr).toMatch(/rotated\. Create a new key: npm run keys -- create\n$/)
  })

  test('history says that it shows the latest events alone, at a hundred of them', async () => {
    const { id, prefix } = await json('create', '--name', 'Many', '--plan', 'Free')
    const changes = Array(97).fill(`UPDATE "ApiKey" SET note = md5(random()::text) WHERE id = ${id}`)
    for (const change of changes) await gateway.prisma.$executeRawUnsafe(change)
    const { stdout } = await keys('history')
    expect(stdout).toMatch(/\n\nThese are the latest 100 events\. Of one key: npm run keys -- history <key>\n$/)
    expect(await json('history')).toHaveLength(100)
    expect((await keys('history', prefix)).stdout).not.toContain('These are the latest')
  })

  test('history keeps the events of a deleted key', async () => {
    const { id, prefix } = await json('create', '--name', 'Gone', '--plan', 'Free')
    await gateway.prisma.apiKey.delete({ where: { id } })
    for (const command of [['history'], ['history', prefix]])
      expect((await keys(...command)).stdout).toMatch(
        new RegExp(`^${prefix.slice(9)} .* deleted +database +Gone$`, 'm'),
      )
    expect(await json('history', prefix)).toMatchObject([{ event: 'created' }, { event: 'deleted' }])
    expect(await json('history', String(id))).toEqual(await json('history', prefix))
    expect(await keys('history', '2000000000')).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('There is no key with the id or prefix "2000000000".'),
    })
  })

  test('list --name says if no key has the text in its name', async () => {
    expect((await keys('list', '--name', 'zzz')).stdout).toMatch(/^None of \d+ keys has "zzz" in its name\.$/m)
    expect(await json('list', '--name', 'zzz')).toEqual([])
  })

  test('options that npm has taken, because there was no -- before them, are named and nothing is done', async () => {
    const count = await gateway.prisma.apiKey.count()
    const byNpm = (variables: Record<string, string>, ...args: string[]) =>
      runKeys({ ...env, npm_lifecycle_event: 'keys', ...variables }, ...args)
    const advice = (options: string, command: string) =>
      `npm has taken ${options} for itself. Write -- before the command: npm run keys -- ${command} …\n`
    expect(await byNpm({ npm_config_name: 'x' }, 'create', 'Free')).toEqual({
      code: 1,
      stdout: '',
      stderr: advice('--name', 'create'),
    })
    const { stderr } = await byNpm({ npm_config_for: 'true', npm_config_json: 'true' }, 'ban', '1', '60')
    expect(stderr).toBe(advice('--json and --for', 'ban'))
    expect(await gateway.prisma.apiKey.count()).toBe(count)
    // Settings of npm's own, and what was given after --.
    const settings = { npm_config_email: 'me@example.com' }
    expect((await byNpm(settings, 'create', '--name', 'Own', '--plan', 'Free')).code).toBe(0)
    const own = await byNpm({ npm_config_access: 'public', npm_config_name: '' }, 'list', '--name', 'zzz')
    expect([own.code, own.stdout]).toEqual([0, expect.stringContaining('None of')])
  })

  test.each([
    ['create', '--nam', 'Did you mean --name?'],
    ['create', '--pln', 'Did you mean --plan?'],
    ['list', '--jsn', 'Did you mean --json?'],
  ])('%s %s: an option that is mistyped gets the one that is meant', async (command, option, hint) => {
    const { code, stderr } = await keys(command, option, 'x')
    expect([code, stderr]).toEqual([1, expect.stringContaining(`unknown option '${option}' (${hint})`)])
  })

  test.each(['2027-02-30', '2027-02-30T10:00:00Z', '2027-04-31'])(
    'a day that does not exist is refused: %s',
    async (expires) => {
      const { code, stderr } = await keys('create', '--name', 'x', '--plan', 'Free', '--expires', expires)
      expect([code, stderr]).toEqual([1, expect.stringContaining('it must be never or a date in the future')])
    },
  )

  test('usage --days draws requests per key and day within 80 columns, the busiest key first', async () => {
    const { id } = await json('create', '--name', 'A name that is longer than its column', '--plan', 'Pro')
    const { id: second } = await json('create', '--name', 'Second', '--plan', 'Pro')
    await gateway.prisma.$executeRaw`
      INSERT INTO "ApiKeyUsage" SELECT id, 'x', (now() AT TIME ZONE 'UTC')::date - ago, 2000000000 / id / (ago + 1), 100, 1500
      FROM unnest(ARRAY[${id}::int, ${second}::int]) AS id, unnest(ARRAY[0, 1, 29, 30, 399]) AS ago`
    const chart = async (...args: string[]) => (await keys('usage', '--days', ...args)).stdout.split('\n')
    const today = new Date().toISOString().slice(0, 10)
    const lines = await chart('30')
    expect(lines[0]).toMatch(new RegExp(`^Requests from \\d{4}-\\d\\d-\\d\\d to ${today} \\(UTC\\)`))
    expect(lines[2]).toBe(
      `${'id'.padEnd(String(second).length)}  name          requests  limited  errors  cost  1 bar = 2 days`,
    )
    const [bars] = lines.flatMap((line) => (line.startsWith(`${id} `) ? [line.split(' ').at(-1) ?? ''] : []))
    expect(bars).toMatch(/^▁·{13}█$/)
    expect(lines.findIndex((line) => line.startsWith(`${id} `))).toBeLessThan(
      lines.findIndex((line) => line.startsWith(`${second} `)),
    )
    const all = [...lines, ...(await chart('400')), ...(await chart('1')), ...(await chart('400', String(id)))]
    expect(all.filter((line) => [...line].length > 80)).toEqual([])
    expect((await chart('400'))[2]).toContain('1 bar = 17 days')
    const days = (await chart('31', String(id))).filter((line) => /^\d{4}/.test(line))
    expect(days).toHaveLength(31)
    expect(days.at(-1)).toMatch(new RegExp(`^${today} +[\\d,]+ +0 +100 +1,500  █{19}░$`))

    const printed = await json('usage', '--days', '30', String(id))
    expect(printed).toMatchObject([{ id, plan: 'Pro', refusals: 300, cost: 4500, outcomes: { unknown: 300 } }])
    expect(printed[0].days.map(({ day }: { day: string }) => day).at(-1)).toBe(today)
    expect(printed[0].days).toHaveLength(3)
  })

  test('usage --hours tells requests over the quota from other errors, hour by hour, and says what each error is', async () => {
    const { id } = await json('create', '--name', 'Busy', '--plan', 'Pro')
    await gateway.prisma.$executeRaw`
      INSERT INTO "ApiKeyUsageHour"
      SELECT ${id}, 'x', date_trunc('hour', now()) - ago * interval '1 hour', 1000, 300 + ago, 900,
        jsonb_build_object('rate_limited', 150, 'key_banned', 50, 'not_found', 100 + ago)
      FROM unnest(ARRAY[0, 2, 24, 71]) AS ago`
    const hour = (ago: number) => new Date(Math.floor(Date.now() / 3_600_000 - ago) * 3_600_000).toISOString()
    const name = (ago: number) => hour(ago).slice(0, 16).replace('T', ' ')
    const of = (await keys('usage', String(id), '--hours', '3')).stdout.split('\n')
    expect(of.slice(1)).toEqual([
      `Requests from ${name(2)} to now (UTC)`,
      '',
      'hour              requests  limited  errors  cost  █ ok ▒ limited ░ error',
      `${name(2)}     1,000      200     102   900  █████████████▒▒▒▒░░░`,
      `${name(1)}         0        0       0     0`,
      `${name(0)}     1,000      200     100   900  ██████████████▒▒▒▒░░`,
      '',
      'requests  status  code          when',
      expect.stringMatching(/^ {5}300 {2}429 {5}rate_limited {2}A window is used up\./),
      expect.any(String),
      expect.stringMatching(/^ {5}202 {2}404 {5}not_found {5}The path or the resource does not exist\.$/),
      expect.stringMatching(/^ {5}100 {2}429 {5}key_banned {4}The key is temporarily banned\./),
      expect.any(String),
      '',
    ])
    const all = (await keys('usage', '--hours', '72')).stdout
    expect(all).toMatch(/ {2}name +requests +limited +errors +cost {2}1 bar = 3 hours$/m)
    expect(all).toMatch(new RegExp(`^${id} +Busy +4K +800 +497 +3\\.6K  ▄·{14}▄·{7}█$`, 'm'))
    expect([...of, ...all.split('\n')].filter((line) => [...line].length > 80)).toEqual([])
    const [{ hours, outcomes }] = await json('usage', '--hours', '24', String(id))
    expect(outcomes).toEqual({ rate_limited: 300, key_banned: 100, not_found: 202 })
    expect(hours).toEqual(
      [2, 0].map((ago) => ({
        hour: hour(ago),
        requests: 1000,
        refusals: 300 + ago,
        cost: 900,
        outcomes: { rate_limited: 150, key_banned: 50, not_found: 100 + ago },
      })),
    )
  })

  test('usage shows figures that are too wide for 80 columns in short', async () => {
    const { id } = await json('create', '--name', 'Wide', '--plan', 'Pro')
    await gateway.prisma.$executeRaw`
      INSERT INTO "ApiKeyUsageHour" SELECT ${id}, 'x', date_trunc('hour', now()), requests, 3, requests,
        jsonb_build_object(repeat('x', 60), 2, 'conflict', 1) FROM unnest(ARRAY[123456789012]) AS requests`
    const lines = (await keys('usage', String(id), '--hours', '1')).stdout.split('\n')
    expect(lines.join('\n')).toMatch(/:00 {4}123\.5B {8}0 {7}3 {2}123\.5B {2}█{19}░$/m)
    expect(lines.filter((line) => [...line].length > 80)).toEqual([])
  })

  test.each([
    ['0', /from 1 to 72/],
    ['73', /from 1 to 72/],
    ['1 --days 2', /'--hours <n>' cannot be used with option '--days <n>'/],
  ])('usage --hours %s is refused', async (hours, message) => {
    const { code, stderr } = await keys('usage', '--hours', ...hours.split(' '))
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
  })

  test('usage of a key without requests says so', async () => {
    const { id } = await json('create', '--name', 'Idle', '--plan', 'Pro')
    expect((await keys('usage', String(id), '--days', '7')).stdout).toMatch(
      /^Key .*\nRequests from .*\(UTC\)\n\nNone\.\n$/,
    )
  })

  test('usage prints every key with its plan, and with Redis its counters', async () => {
    const { stdout } = await keys('usage')
    expect(stdout).toMatch(/unlimited.*Enterprise/)
    if (process.env.TEST_REDIS_URL) expect(stdout).toMatch(/[█░]{10} \d+\/300/)
  })

  test('without Redis, usage says why there are no counters, and shows what the database has about today', async () => {
    const withRedis = env
    env = gateway.database.env
    onTestFinished(() => {
      env = withRedis
    })
    const { row } = await gateway.createKey({ name: 'Counted', plan: 'Pro' })
    await gateway.prisma.$executeRaw`
      INSERT INTO "ApiKeyUsage" SELECT ${row.id}, 'x', (now() AT TIME ZONE 'UTC')::date - ago, 5 * (ago + 1), 2, 7
      FROM unnest(ARRAY[0, 1]) AS ago`
    const { stdout, stderr } = await keys('usage', String(row.id))
    expect(stderr).toMatch(/Without REDIS_URL each gateway counts in its own memory.* Shown: .* about today \(UTC\)/)
    expect(stdout).toMatch(/requestsToday │ refusedToday │ costToday │$/m)
    expect(stdout).toMatch(/ Counted .* active │ 5 +│ 2 +│ 7 +│/)
    // Neither here nor in a list is a column without a value in any row.
    expect(stdout).not.toMatch(/ minute | day |–/)
    const [{ minute, day, ...today }] = JSON.parse((await keys('usage', String(row.id), '--json')).stdout)
    expect([minute, day, today]).toMatchObject([null, null, { requestsToday: 5, refusedToday: 2, costToday: 7 }])
    await json('create', '--name', 'Never used', '--plan', 'Free')
    expect((await keys('list', '--name', 'never used')).stdout).not.toMatch(/–|expiresAt|replacedById/)
    expect(await json('list', '--name', 'never used')).toMatchObject([{ expiresAt: null, replacedById: null }])
  })

  test.each([
    ['an Enterprise key without its limits', 'create --name x --plan Enterprise', /needs both/],
    ['limits on another plan', 'create --name x --plan Free --day-limit 5', /for Enterprise only/],
    ['an unknown plan', 'create --name x --plan Gold', /: it must be Free, Pro, Business or Enterprise\.$/m],
    ['a limit of 0', 'create --name x --plan Enterprise --minute-limit 0', /from 1 to 2147483647/],
    ['a name that is too long', `create --name ${'x'.repeat(101)} --plan Free`, /1 to 100 characters/],
    ['a control character in a name', 'create --name a\u0007b --plan Free', /control character/],
    ['a value without quotes', 'create --name x --plan Free --owner Ann Lee', /Write a value with spaces in quotes\./],
    ['a day that does not exist', 'create --name x --plan Free --expires 2099-02-30', /a date in the future/],
    ['a date in the past', 'create --name x --plan Free --expires 2020-01-01', /a date in the future/],
    [
      'a date after the year 9999',
      'create --name x --plan Free --expires 9999-12-31T23:59:59-01:00',
      /not after the year 9999/,
    ],
    ['no name', 'create --plan Free', /--name/],
    ['an owner that is too long', `create --name x --plan Free --owner ${'x'.repeat(101)}`, /1 to 100 characters/],
    ['a character that reverses others', 'create --name a\u202eb --plan Free', /no control character/],
    ['the end of a line in a name', 'create --name a\u2028b --plan Free', /no control character/],
    ['a name of joiners alone', 'create --name \u200c\u200d --plan Free', /1 to 100 characters/],
    ['an owner without a character', 'update 1 --owner \u0007', /no control character/],
    ['a note that is too long', `update 1 --note ${'x'.repeat(1_001)}`, / 'x{60}…' is invalid: it must have 1 to 1000/],
    ['what is no e-mail address', 'create --name x --plan Free --email ann', /an e-mail address of at most 254/],
    ['an e-mail address that is too long', `update 1 --email a@${'x'.repeat(253)}`, /an e-mail address of at most 254/],
    ['an id beyond all ids', 'show 2147483648', /no key with the id, prefix or name "2147483648"/],
    ['an unknown key', 'ban 999999', /no key with the id or prefix "999999"\. List all keys: npm run keys -- list$/m],
    ['an unknown command', 'destroy 1', /unknown command .* Commands: create, list, .*, history\.$/m],
    ['an unknown option', 'ban 1 --days 3', /option '--days'\. Usage: .* ban <key> \(options: --json, --for/],
    ['an unknown access', 'access 1 none', /'none' is invalid.*must be write or read/],
    [
      'an option without its value',
      'usage --days',
      /argument missing\. Usage: .* usage \[key\] \(options: .*--days <n>/,
    ],
    ['0 days', 'usage --days 0', /'0' is invalid: it must be a whole number from 1 to 400/],
    ['401 days', 'usage --days 401', /'401' is invalid: it must be a whole number from 1 to 400/],
    ['a missing key', 'history Nobody', /no key with the id, prefix or name "Nobody"\. List all keys/],
    ['too many arguments', 'show 1 2', /too many arguments.* Usage: npm run keys -- show <key>/],
  ])('rejects %s with one line on stderr and exit code 1, and writes nothing', async (_, command, message) => {
    const before = await gateway.prisma.apiKey.count()
    const { code, stdout, stderr } = await keys(...command.split(' '))
    expect([code, stdout]).toEqual([1, ''])
    expect(stderr).toMatch(message)
    // Some errors show only in the database.
    const lines = stderr
      .replace(/^Database: .*\n/, '')
      .trimEnd()
      .split('\n')
    expect(lines).toHaveLength(1)
    expect(await gateway.prisma.apiKey.count()).toBe(before)
  })
})

describe('the database that a command works on', () => {
  test('is named before anything is done, except with --json', async () => {
    const name = env.DATABASE_URL ? /^Database: "\w+" at [\w.]+:\d+\n/ : /^Database: embedded, in \/.*\n/
    expect((await keys('list')).stderr).toMatch(name)
    expect((await keys('list')).stderr).not.toContain('://')
    expect((await keys('list', '--json')).stderr).not.toMatch(/Database/)
  })
})
