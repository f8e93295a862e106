import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/gateway/database/index.js'
import { readSettings } from '../../src/settings.js'
import { isInstalled, Postgres } from '../lab/faults/postgres.js'
import { refusal } from '../support/database.js'
import { refusedStart, startGateway, temporaryFolder } from '../support/process.js'
import { readiness } from '../support/remote.js'

// The line with which a start fails. Most are asked of what the start calls, because to start a process takes longer.

/** A certificate of a server that is signed by itself, and its key. */
async function certificateFor(name: string) {
  const folder = await temporaryFolder()
  const [certificate, key] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${/^\d/.test(name) ? 'IP' : 'DNS'}:${name}`]
  const files = ['-keyout', key, '-out', certificate, '-days', '2']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject, ...files], { stdio: 'ignore' })
  return { certificate, key }
}

const open = (DATABASE_URL: string, onNotice?: (line: string) => void) =>
  openDatabase(readSettings({ DATABASE_URL }), { onNotice })

async function refused(DATABASE_URL: string) {
  const line = await refusal(open(DATABASE_URL))
  expect(line).not.toContain('secret')
  return line
}

async function opens(DATABASE_URL: string) {
  const database = await open(DATABASE_URL, expect.fail)
  await database.ping().finally(database.close)
}

/** The URL of a server that is not PostgreSQL. */
async function listen(serve: (socket: Socket) => unknown) {
  const server = createServer((socket) => void serve(socket.on('error', () => {}))).listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  return `postgresql://ann:secret@127.0.0.1:${(server.address() as AddressInfo).port}/pets`
}

describe.runIf(isInstalled())('a start says in one line what to do about', () => {
  let postgres: Postgres
  beforeAll(async () => {
    postgres = await Postgres.create()
  })
  afterAll(() => postgres.end())

  test('a wrong address, user, password or database', async () => {
    await postgres.requirePassword('right')
    const as = (login: string, database = 'petstore') => postgres.url(login, database)
    expect(await refused(as('petstore'))).toMatch(/; the server wants a password: add it to the URL$/)
    expect(await refused(as('petstore:secret'))).toMatch(/password authentication failed.*percent-encoded$/)
    expect(await refused(as('petstore:right', 'no_such'))).toMatch(/does not exist; create it, or correct the URL$/)
    expect(await refused(as('ann:secret'))).toMatch(
      /no pg_hba.conf entry.*; or admit this user and address in its pg_hba.conf$/,
    )
    expect(await refused(`${as('petstore:secret')}?port=99999`)).toMatch(/port is "99999"; it must be a number from 1/)
    expect(await refused('postgresql:///petstore?host=/no/such/folder')).toMatch(
      /there is no socket; is the server running/,
    )
  })

  describe.runIf(spawnSync('openssl', ['version']).status === 0)('TLS,', () => {
    const url = (parameters: string) => `${postgres.url('petstore:secret')}?${parameters}`

    test('and works with each URL of docs/operators.md', async () => {
      await postgres.requirePassword('secret')
      await opens(url('sslmode=disable'))
      expect(await refused(url('sslmode=verify-full'))).toMatch(
        /^DATABASE_URL: .*The server does not support SSL connections; connect without TLS \(sslmode=disable\)/,
      )

      const { certificate, key } = await certificateFor('127.0.0.1')
      await postgres.requireTls(certificate, key)
      const gateway = await startGateway({ DATABASE_URL: url(`sslmode=verify-full&sslrootcert=${certificate}`) })
      expect([(await readiness(gateway.url))[0], gateway.errors()]).toEqual([200, ''])
      await opens(url(`sslmode=require&sslrootcert=${certificate}`))
      await opens(url('sslmode=no-verify'))
      expect(await refused(url(''))).toMatch(/no encryption; the server wants TLS: add \?sslmode=verify-full/)
      const untrusted =
        /self-signed certificate.*; trust its CA \(sslmode=verify-full&sslrootcert=FILE\), or .* \(sslmode=no-verify\)/
      for (const mode of ['verify-full', 'require']) expect(await refused(url(`sslmode=${mode}`))).toMatch(untrusted)
      expect(await refusedStart({ DATABASE_URL: url('sslmode=require') })).toMatch(untrusted)
      const { certificate: other } = await certificateFor('other.example.com')
      for (const wrong of [other, key])
        expect(await refused(url(`sslmode=verify-full&sslrootcert=${wrong}`))).toMatch(/certificate.*; trust its CA/)
    })

    test('and refuses the certificate of another name', async () => {
      const { certificate, key } = await certificateFor('other.example.com')
      await postgres.requireTls(certificate, key)
      expect(await refused(url(`sslmode=verify-full&sslrootcert=${certificate}`))).toMatch(
        /certificate's altnames.*; connect by a name that the certificate has/,
      )
    })
  })
})

test('a server that expects the PROXY protocol is refused with one line', async () => {
  const url = await listen((socket) =>
    socket.once('data', (data) => void (/^PROXY /.test(`${data}`) || socket.destroy())),
  )
  expect(await refused(url)).toMatch(/; is it a PostgreSQL server/)
})

test.runIf(process.platform === 'linux')(
  'a DATA_DIR where no folder can be made is refused with one line',
  async () => {
    const start = openDatabase(readSettings({ DATA_DIR: '/proc/petstore/data' }))
    expect(await refusal(start)).toMatch(/^DATA_DIR \/proc\/petstore\/data cannot be used: /)
  },
)

test.each(['', '?sslmode=verify-full', '?sslmode=verify-full&sslnegotiation=direct'])(
  'a port that is not of PostgreSQL is refused with one line: %s',
  async (parameters) => {
    const url = await listen((socket) => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    expect(await refused(url + parameters)).toMatch(
      /^DATABASE_URL: the database "pets" at 127\.0\.0\.1:\d+ cannot be used: .*; is it a PostgreSQL server, and does sslmode fit\?$/,
    )
  },
)
