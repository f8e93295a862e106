import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { emptyStore } from '../support/calls.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { freePort } from '../support/ports.js'
import { runNode, temporaryFolder } from '../support/process.js'

// The examples that import and export CSV, as a shop's staff runs them.

let gateway: Gateway
let url: string
/** An import that nothing answers: it gives up after half a minute. */
let unanswered: ReturnType<typeof runNode>
beforeAll(async () => {
  const port = await freePort()
  url = `http://127.0.0.1:${port}/v1`
  gateway = await openGateway({ env: { BASE_URL: url }, seconds: { minute: 10, day: 600, address: 60 } })
  await gateway.listen(port)
  const env = { PETSTORE_URL: `http://127.0.0.1:${await freePort()}`, PETSTORE_KEY: 'any' }
  unanswered = runNode(['docs/examples/export.mjs', 'pets', join(tmpdir(), 'unwritten.csv')], undefined, env)
})
afterAll(() => gateway.close())

let folder: string
beforeEach(async () => {
  await emptyStore(gateway.prisma)
  await seed(gateway.prisma)
  // The categories stay. Pets are numbered from 1.
  await gateway.prisma.$executeRaw`TRUNCATE "Order", "InventoryItem", "Pet", "IdempotentAnswer" RESTART IDENTITY`
  folder = await temporaryFolder()
})

const file = (name = 'pets.csv') => join(folder, name)
const write = (text: string | Buffer, name?: string) => {
  writeFileSync(file(name), text)
  return file(name)
}
const environment = () => ({ PETSTORE_URL: url, PETSTORE_KEY: gateway.key })
const run = (script: 'import' | 'export', args: string[], env: Record<string, string> = {}) =>
  runNode([`docs/examples/${script}.mjs`, ...args], undefined, { ...environment(), ...env })

/** All pets by id, with the names of their categories. */
const stored = async () =>
  (await gateway.prisma.pet.findMany({ orderBy: { id: 'asc' }, include: { category: true, inventory: true } })).map(
    ({ name, status, category, inventory }) => ({
      name,
      status,
      category: category.name,
      quantity: inventory?.quantity,
    }),
  )
const names = async () => (await stored()).map(({ name }) => name)

const pets = (count: number) => Array.from({ length: count }, (_, i) => `Pet ${i},Cats,pending\r\n`)
const HEADER = 'name,category,status\r\n'

test('an import of 5,000 pets that is killed again and again creates each of them once', async () => {
  const path = write(HEADER + pets(5_000).join(''))
  let killed = 0
  for (const rows of [700, 2_300, 4_100]) {
    const child = spawn(process.execPath, ['docs/examples/import.mjs', 'pets', path], { env: environment() })
    child.stderr.on('data', (text) => {
      const [, done] = /(\d+) of 5000/.exec(String(text)) ?? []
      if (Number(done) >= rows) child.kill('SIGKILL')
    })
    const [, signal] = await once(child, 'exit')
    if (signal === 'SIGKILL') killed++
  }
  expect(killed).toBe(3)
  const { code, stderr } = await run('import', ['pets', path])
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^5000 of 5000 rows are imported$/m)])
  expect(stderr).toMatch(/^\d\d00 of 5000 rows were created in an earlier run$/m)
  const found = await names()
  expect([found.length, new Set(found).size]).toEqual([5_000, 5_000])
})

describe('a wrong line', () => {
  test('is named, nothing of its hundred is imported, and the corrected file continues there', async () => {
    // The name on two lines moves all others down by one.
    const rows = ['"Two\r\nlines",Cats,pending\r\n', ...pets(249)]
    const wrong = rows.with(149, 'Pet 148,Cats,solt\r\n').with(170, ',Cats,sold\r\n')
    const { code, stderr } = await run('import', ['pets', write(HEADER + wrong.join(''))])
    expect([code, stderr]).toEqual([1, expect.stringContaining('line 152: status is "solt"; it must be available')])
    expect(stderr).toContain('line 173: name is required')
    expect(stderr).toContain('100 of 250 rows are imported, none of those on lines 103 to 202.')
    expect(await names()).toHaveLength(100)
    // Corrected, and longer by a row.
    const corrected = HEADER + [...rows, 'One more,Cats,\r\n'].join('')
    expect(await run('import', ['pets', write(corrected)])).toMatchObject({ code: 0 })
    // A day later, the service does not know the keys of the first run anymore.
    await gateway.prisma.idempotentAnswer.deleteMany()
    const again = await run('import', ['pets', write(`${corrected}And another,Cats,\r\n`)])
    expect([again.code, again.stderr]).toEqual([0, expect.stringContaining('252 of 252 rows are imported')])
    const found = await names()
    expect([found.length, new Set(found).size]).toEqual([252, 252])
  })

  test('that was imported already and has changed since is not imported again', async () => {
    const path = write(`${HEADER}Luna,Cats,\r\n`)
    expect(await run('import', ['pets', path])).toMatchObject({ code: 0 })
    expect((await run('import', ['pets', path])).stderr).toContain('There is nothing left to import.')
    write(`${HEADER}Lune,Cats,\r\nMilo,Cats,\r\n`)
    const { code, stderr } = await run('import', ['pets', path])
    expect([code, stderr]).toEqual([1, expect.stringContaining('has changed in its first 1 new pets')])
    expect(await names()).toEqual(['Luna'])
  })

  test('whose progress cannot be noted creates nothing', async () => {
    const path = write(`${HEADER}Luna,Cats,\r\n`)
    mkdirSync(`${path}.progress.new`)
    const { code, stderr } = await run('import', ['pets', path])
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^\S+pets\.csv\.progress cannot be written: EISDIR/m)])
    expect(await names()).toEqual([])
  })

  test('that changes the same pet as another one is named, and so is the other', async () => {
    const { code, stderr } = await run('import', ['stock', write('petId,quantity\n1,1\n1,2\n')])
    const message = 'line 3: petId is 1; it must not be the same as in line 2.'
    expect([code, stderr]).toEqual([1, expect.stringContaining(message)])
  })

  test('that changes a pet which does not exist is named', async () => {
    const { code, stderr } = await run('import', ['stock', write('petId,quantity\n999,1\n')])
    expect([code, stderr]).toEqual([
      1,
      expect.stringContaining('There is no inventory entry for pet 999, which line 2 names.'),
    ])
  })

  test.each([
    [
      'a category that does not exist',
      `${HEADER}A,Cats,\r\nB,Dragons,\r\nC,99,\r\n`,
      /Line 3: there is no category Dragons.\nLine 4: there is no category 99./,
    ],
    ['a cell too many', `${HEADER}A,Cats,sold,\r\n`, /Line 2 has 4 cells; the first line has 3/],
    ['an open quotation mark', `${HEADER}\r\n"A,Cats,sold\r\n`, /Line 3: a quotation mark is missing/],
    [
      'a column with another name',
      'name,category,stauts\r\nA,Cats,sold',
      /Unknown columns: stauts. Known are id, name, category, status/,
    ],
    ['a column that is missing', 'name;status\r\nA;sold', /There is no column category/],
    ['no rows', HEADER, /There are no rows/],
    ['no content', '', /There are no rows/],
    ['another encoding', Buffer.from(`${HEADER}Žofie,Cats,sold`, 'latin1').fill(0xe8, 22, 23), /is not UTF-8/],
  ])('of a file with %s is named before anything is imported', async (_, text, message) => {
    const { code, stderr } = await run('import', ['pets', write(text)])
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
    expect(stderr).not.toMatch(/^\s+at /m)
    expect(await names()).toEqual([])
  })

  test('with a category of which there are two asks for the id', async () => {
    await gateway.prisma.category.create({ data: { name: 'Cats' } })
    const { code, stderr } = await run('import', ['pets', write('name,category\nA,Cats\n')])
    expect([code, stderr]).toEqual([1, expect.stringContaining('Line 2: 2 categories are called Cats; write the id.')])
  })
})

test.each([
  ['of Excel in Europe', '\uFEFFName;Category;Status\r\nŽofie 🐈;cats;sold\r\n"A;B";Dogs;\r\n;;\r\n'],
  ['of a Unix program', 'status,category,name\nsold,Cats,Žofie 🐈\n\n,Dogs,"A;B"'],
  ['with tabs', 'category\tname\tstatus\n"Cats"\tŽofie 🐈 \tsold\nDogs\tA;B\t\n'],
  ['with ids of categories', 'category,name,status\n2,Žofie 🐈,sold\n1,A;B,\n'],
])('a file %s can be imported', async (_, text) => {
  expect(await run('import', ['pets', write(text)])).toMatchObject({ code: 0 })
  expect(await stored()).toMatchObject([
    { name: 'Žofie 🐈', category: 'Cats', status: 'sold' },
    { name: 'A;B', category: 'Dogs', status: 'available' },
  ])
})

const hostile = [
  '"',
  'Rex "the dog"',
  'a, b; c\td',
  'two\nlines',
  'two\r\nlines',
  '🐶👩‍👩‍👧',
  '=1+1',
  "'=1+1",
  "'a'",
  '-5',
  '+',
  '@x',
  '42',
  ',',
  ';',
]

test.each([',', ';', '\t', 'tab'])(
  'what is exported with %j between cells restores every pet, whatever its name',
  async (separator) => {
    const category = await gateway.prisma.category.create({ data: { name: 'Birds, "big"' } })
    await gateway.post(
      '/pets/batch',
      hostile.map((name) => ({ name, categoryId: Number(category.id), status: 'sold' })),
    )
    const before = await stored()
    expect(before.map(({ name }) => name)).toEqual(hostile)
    expect(await run('export', ['pets', file(), separator])).toMatchObject({ code: 0, stdout: '' })
    await gateway.prisma.pet.updateMany({ data: { name: 'x', categoryId: 1, status: 'pending' } })
    expect(await run('import', ['pets', file()])).toMatchObject({ code: 0 })
    expect(await stored()).toEqual(before)
    // Nothing that a spreadsheet would run.
    expect(readFileSync(file(), 'utf8')).not.toMatch(/(^|[,;\t\n]"?)[=+@-]/m)
  },
)

test('a stock-take of 500 pets: exported, counted, imported; all pages are read', async () => {
  await run('import', ['pets', write(HEADER + pets(500).join(''))])
  expect(await run('export', ['stock', file('stock.csv'), ';'])).toMatchObject({ code: 0 })
  const text = readFileSync(file('stock.csv'), 'utf8')
  expect(text).toMatch(/^\uFEFF/)
  const [header, ...rows] = text.trim().split('\r\n')
  expect([header, rows.length, rows[499]]).toEqual(['petId;name;status;quantity', 500, '500;Pet 499;pending;0'])
  const counted = rows.map((row, i) => row.replace(/0$/, String(i * 7)))
  expect(await run('import', ['stock', write([header, ...counted].join('\r\n'), 'stock.csv')])).toMatchObject({
    code: 0,
  })
  expect((await stored()).map(({ quantity }) => quantity)).toEqual(rows.map((_, i) => i * 7))
})

describe('an export of orders', () => {
  const LINES = [
    'id,petId,name,quantity,shipDate,complete',
    '1,1,"Rex ""the dog""",1,2026-10-31T23:30:00.000Z,true',
    "2,2,'=1+1,5,2026-11-30T23:00:00.000Z,false",
    '3,1,"Rex ""the dog""",2,,false',
  ]
  beforeEach(async () => {
    const pets = ['Rex "the dog"', '=1+1'].map((name) => ({ name, categoryId: 1 }))
    await gateway.post('/pets/batch', pets)
    await gateway.post('/store/orders/batch', [
      { petId: 1, shipDate: '2026-10-31T23:30:00Z', complete: true },
      { petId: 2, quantity: 5, shipDate: '2026-12-01T00:00:00+01:00' },
      { petId: 1, quantity: 2 },
    ])
  })

  test.each([
    ['', [1, 2, 3]],
    ['--complete true', [1]],
    ['--petId 1 --complete false', [3]],
    ['--shipDateFrom 2026-11-01', [2]],
    ['--shipDateFrom 2026-11-01T00:00:00+01:00 --shipDateBefore 2026-12-01T00:00:00+01:00', [1]],
    ['--shipDateBefore 2026-11-01 --petId 1', [1]],
    ['--petId 3', []],
  ])('has the orders of %j, wherever it runs', async (filters, ids) => {
    const args = ['orders', file('orders.csv'), ...filters.split(' ').filter(Boolean)]
    expect(await run('export', args, { TZ: 'Pacific/Auckland' })).toMatchObject({
      code: 0,
      stdout: '',
      stderr: expect.stringContaining(`${ids.length} rows are in `),
    })
    const lines = [0, ...ids].map((line) => `${LINES[line]}\r\n`)
    expect(readFileSync(file('orders.csv'), 'utf8')).toBe(`\uFEFF${lines.join('')}`)
  })

  test.each([
    ['--complete perhaps', 'complete is "perhaps"'],
    ['--complete true --complete false', 'complete must not be repeated'],
    ['--shipDateFrom 2026-11-31', 'shipDateFrom is "2026-11-31T00:00:00Z"'],
    ['--shipDateFrom november', 'shipDateFrom is "november"'],
  ])('of %s is refused, and an older file stays', async (filter, message) => {
    const path = write('older', 'orders.csv')
    expect(await run('export', ['orders', path, ...filter.split(' ')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining(message),
    })
    expect([readFileSync(path, 'utf8'), readdirSync(folder)]).toEqual(['older', ['orders.csv']])
  })

  test('that is interrupted leaves nothing, and an older file stays, with its mode', async () => {
    const path = write('older', 'orders.csv')
    chmodSync(path, 0o600)
    const env = { ...environment(), TMPDIR: await temporaryFolder() }
    const slow = { ...env, PETSTORE_URL: `http://127.0.0.1:${await freePort()}` }
    const child = spawn(process.execPath, ['docs/examples/export.mjs', 'orders', path], { env: slow })
    await once(child.stderr, 'data')
    child.kill('SIGINT')
    expect(await once(child, 'exit')).toEqual([130, null])
    expect([readFileSync(path, 'utf8'), readdirSync(env.TMPDIR)]).toEqual(['older', []])
    expect(await run('export', ['orders', path], { TMPDIR: env.TMPDIR })).toMatchObject({ code: 0 })
    expect([statSync(path).mode & 0o777, readdirSync(env.TMPDIR)]).toEqual([0o600, []])
  })

  test.each([
    ['orders x.csv --status sold', "Unknown option '--status'"],
    ['orders x.csv --complete', "Option '--complete <value>' argument missing"],
    ['stock x.csv --minQuantity -1', "Option '--minQuantity' argument is ambiguous"],
    ['orders x.csv | ', '"|" is no separator.'],
    ['orders x.csv toString', '"toString" is no separator.'],
    ['orders x.csv ; more', 'more: there are too many arguments.'],
    ['orders', 'Say which file to write.'],
    ['--petId 1 orders x.csv', 'First say what to export: pets, orders or stock.'],
  ])('of %s is a wrong call', async (call, reason) => {
    const { code, stderr } = await run('export', call.trim().split(' '))
    expect([code, stderr]).toEqual([2, expect.stringMatching(/\n\nUsage: node.*UTC.*\n$/s)])
    expect(stderr.split('\n')[0]).toBe(reason)
  })
})

test('each filter of an export is answered, also together with all others', async () => {
  await run('import', ['pets', write(HEADER + pets(2).join(''))])
  for (const [kind, filters, count] of [
    ['pets', '--status pending --categoryId 2 --inStock false --search pet', 2],
    ['stock', '--status pending --categoryId 2 --minQuantity 0 --maxQuantity 0', 2],
    ['orders', '--petId 1 --complete true --shipDateFrom 2026-01-01 --shipDateBefore 2027-01-01', 0],
  ] as const) {
    const options = filters.split(/ (?=--)/)
    for (const some of [...options, filters]) {
      const { code, stderr } = await run('export', [kind, file(), ...some.split(' ')])
      expect([code, stderr], some).toEqual([0, expect.stringContaining(`${count} rows are in`)])
    }
  }
})

test('an export of 100,000 orders takes no more memory than one of a few pages', async () => {
  await gateway.post('/pets/batch', [{ name: '狗'.repeat(100), categoryId: 1 }])
  await gateway.prisma.$executeRaw`
    INSERT INTO "Order" ("petId", "shipDate") SELECT 1, now() FROM generate_series(1, 100000)`
  // Less than the rows need together.
  const env = { NODE_OPTIONS: '--max-old-space-size=24' }
  const { code, stderr } = await run('export', ['orders', file('orders.csv')], env)
  expect([code, stderr]).toEqual([0, expect.stringMatching(/^100000 rows are in /m)])
  const lines = readFileSync(file('orders.csv'), 'utf8').trimEnd().split('\r\n')
  expect([lines.length, new Set(lines).size, lines[100_000]]).toEqual([
    100_001,
    100_001,
    expect.stringMatching(/^100000,1,狗{100},1,2.*Z,false$/),
  ])
})

test('limits, 503 and lost answers are waited out, and no pet is created twice', async () => {
  const sent: string[] = []
  const front = createServer(async (request, response) => {
    const body = await buffer(request)
    const id = String(request.headers['idempotency-key'])
    const times = sent.filter((key) => key === id).length
    if (request.method === 'POST') sent.push(id)
    if (request.method === 'POST' && times === 0)
      return void response.writeHead(503, { 'retry-after': '1' }).end('Busy')
    const headers = {
      authorization: String(request.headers.authorization),
      'content-type': 'application/json',
      'idempotency-key': id,
    }
    const answer = await fetch(new URL(request.url ?? '', url), {
      method: request.method,
      headers,
      body: request.method === 'GET' ? undefined : body,
    })
    const text = await answer.text()
    // The pets are created, and the client does not know it.
    if (answer.status === 201 && times === 1) return void request.socket.destroy()
    response
      .writeHead(answer.status, {
        'content-type': 'application/json',
        'retry-after': answer.headers.get('retry-after') ?? '',
        'idempotency-replayed': '',
      })
      .end(text)
  })
  await once(front.listen(0, '127.0.0.1'), 'listening')
  onTestFinished(() => void front.close())
  const { key, row } = await gateway.createKey({ plan: 'Enterprise', minuteLimit: 21, dayLimit: 1_000 })
  const env = { PETSTORE_URL: `http://127.0.0.1:${(front.address() as AddressInfo).port}/v1`, PETSTORE_KEY: key }
  const { code, stderr } = await run('import', ['pets', write(HEADER + pets(250).join(''))], env)
  expect([code, stderr]).toEqual([0, expect.stringContaining('250 of 250')])
  expect(stderr).toMatch(/returned 503\. The next attempt is in \d s/)
  expect(stderr).toMatch(/of 21 requests per 10 seconds.* The next attempt is in \d s/)
  expect(stderr).toMatch(/No answer from .*: \w+\. The next attempt is in \d s/)
  const found = await names()
  expect([found.length, new Set(found).size]).toEqual([250, 250])
  expect(await gateway.prisma.apiKey.findUnique({ where: { id: row.id } })).toMatchObject({ bannedUntil: null })
})

describe('the exit code is', () => {
  test('0 of --help, which needs no key and names the columns, the environment and all codes', async () => {
    for (const script of ['import', 'export'] as const) {
      const { code, stdout } = await run(script, ['--help'], { PETSTORE_URL: '', PETSTORE_KEY: '' })
      expect(code).toBe(0)
      for (const word of ['name, category', 'quantity', 'PETSTORE_URL', 'PETSTORE_KEY', '3 no answer'])
        expect(stdout).toContain(word)
    }
  })

  test.each([
    ['without the address', ['pets', 'x.csv'], { PETSTORE_URL: '' }, 'Set PETSTORE_URL'],
    ['without a key', ['pets', 'x.csv'], { PETSTORE_KEY: '' }, 'PETSTORE_KEY'],
    ['without a file', ['pets'], {}, 'Usage: node'],
    ['for a kind that does not exist', ['toString', 'x.csv'], {}, 'Usage: node'],
  ])('2 %s', async (_, args, env, message) => {
    for (const script of ['import', 'export'] as const)
      expect(await run(script, args, env)).toMatchObject({
        code: 2,
        stdout: '',
        stderr: expect.stringContaining(message),
      })
  })

  test('1 of what the service refuses', async () => {
    const { code, stderr } = await run('export', ['pets', file()], { PETSTORE_KEY: 'petstore_wrong' })
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^The API key .*\n$/)])
  })

  test.each([
    ['a folder that is not there', 'none/pets.csv', /^\S+none\/pets\.csv cannot be written: ENOENT.*\n$/],
    ['a folder', '', /cannot be written: EISDIR.* All rows are in (\S+)\n$/],
  ])('1 of %s, and no row is lost', async (_, name, message) => {
    const { code, stderr } = await run('export', ['pets', file(name)])
    expect([code, stderr]).toEqual([1, expect.stringMatching(message)])
    const [, kept] = message.exec(stderr) ?? []
    if (kept) {
      expect(readFileSync(kept, 'utf8')).toBe('\uFEFFid,name,category,status\r\n')
      rmSync(dirname(kept), { recursive: true })
    }
  })

  test('1 of a file that is not there', async () => {
    expect(await run('import', ['pets', file('none.csv')])).toMatchObject({
      code: 1,
      stderr: expect.stringContaining('none.csv'),
    })
  })

  test('3 where nothing answers, after six attempts', async () => {
    const { code, stderr } = await unanswered
    expect([code, stderr.match(/No answer from/g)?.length]).toEqual([3, 6])
    expect(stderr).toContain('ECONNREFUSED. Start the script again later.')
  })
})
