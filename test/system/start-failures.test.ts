import { execFileSync, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { describe, expect, onTestFinished, test } from 'vitest'
import { isInstalled, Postgres } from '../faults/postgres.js'
import { refusedStart, startGateway, temporaryFolder } from '../support/process.js'
import { readiness } from '../support/remote.js'

/** A certificate of a server that is signed by itself, and its key. */
async function certificateFor(name: string) {
  const folder = await temporaryFolder()
  const [certificate, key] = [join(folder, 'certificate.pem'), join(folder, 'key.pem')]
  const subject = ['-subj', `/CN=${name}`, '-addext', `subjectAltName=${/^\d/.test(name) ? 'IP' : 'DNS'}:${name}`]
  const files = ['-keyout', key, '-out', certificate, '-days', '2']
  execFileSync('openssl', ['req', '-x509', '-newkey', 'rsa:2048', '-nodes', ...subject, ...files], { stdio: 'ignore' })
  return { certificate, key }
}

/** The line with which a start fails. */
async function refusal(DATABASE_URL: string) {
  const stderr = await refusedStart({ DATABASE_URL })
  expect(stderr).not.toContain('secret')
  expect(stderr.trimEnd().split('\n')).toHaveLength(1)
  return stderr
}

async function starts(DATABASE_URL: string) {
  const { url, stop, errors } = await startGateway({ DATABASE_URL })
  expect((await readiness(url))[0]).toBe(200)
  expect(errors()).toBe('')
  await stop()
}

describe.runIf(isInstalled() && spawnSync('openssl', ['version']).status === 0)('a start with TLS', () => {
  test('works with each URL of docs/operators.md; everything else is one line that says what to do', async () => {
    const postgres = await Postgres.create()
    onTestFinished(() => postgres.end())
    const url = (parameters: string) => `${postgres.url().replace('petstore@', 'petstore:secret@')}?${parameters}`
    await starts(url('sslmode=disable'))
    expect(await refusal(url('sslmode=verify-full'))).toMatch(
      /^DATABASE_URL: .*The server does not support SSL connections; connect without TLS \(sslmode=disable\)/,
    )

    const { certificate, key } = await certificateFor('127.0.0.1')
    await postgres.requireTls(certificate, key)
    await starts(url(`sslmode=verify-full&sslrootcert=${certificate}`))
    await starts(url(`sslmode=require&sslrootcert=${certificate}`))
    await starts(url('sslmode=no-verify'))
    expect(await refusal(url(''))).toMatch(/no encryption; the server wants TLS: add \?sslmode=verify-full/)
    for (const mode of ['verify-full', 'require'])
      expect(await refusal(url(`sslmode=${mode}`))).toMatch(
        /self-signed certificate.*; trust its CA \(sslmode=verify-full&sslrootcert=FILE\), or .* \(sslmode=no-verify\)/,
      )
    const { certificate: other } = await certificateFor('other.example.com')
    expect(await refusal(url(`sslmode=verify-full&sslrootcert=${other}`))).toMatch(/certificate.*; trust its CA/)
    expect(await refusal(url(`sslmode=verify-full&sslrootcert=${key}`))).toMatch(/certificate.*; trust its CA/)
  })

  test('refuses the certificate of another name', async () => {
    const postgres = await Postgres.create()
    onTestFinished(() => postgres.end())
    const { certificate, key } = await certificateFor('other.example.com')
    await postgres.requireTls(certificate, key)
    expect(await refusal(`${postgres.url()}?sslmode=verify-full&sslrootcert=${certificate}`)).toMatch(
      /certificate's altnames.*; connect by a name that the certificate has/,
    )
  })
})

test.runIf(isInstalled())(
  'a start says in one line which of address, user, password and database is wrong',
  async () => {
    const postgres = await Postgres.create()
    onTestFinished(() => postgres.end())
    await postgres.requirePassword('right')
    const as = (login: string, database = 'petstore') => postgres.url(login, database)
    expect(await refusal(as('petstore'))).toMatch(/; the server wants a password: add it to the URL\n$/)
    expect(await refusal(as('petstore:secret'))).toMatch(/password authentication failed.*percent-encoded\n$/)
    expect(await refusal(as('petstore:right', 'no_such'))).toMatch(/does not exist; create it, or correct the URL\n$/)
    expect(await refusal(as('ann:secret'))).toMatch(
      /no pg_hba.conf entry.*; or admit this user and address in its pg_hba.conf\n$/,
    )
    expect(await refusal(`${as('petstore:secret')}?port=99999`)).toMatch(/port is "99999"; it must be a number from 1/)
    expect(await refusal('postgresql:///petstore?host=/no/such/folder')).toMatch(
      /there is no socket; is the server running/,
    )
  },
)

test('a server that expects the PROXY protocol is refused with one line', async () => {
  const server = createServer((socket) => {
    socket.on('error', () => {}).once('data', (data) => void (/^PROXY /.test(`${data}`) || socket.destroy()))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(() => void server.close())
  const { port } = server.address() as AddressInfo
  expect(await refusal(`postgresql://ann:secret@127.0.0.1:${port}/pets`)).toMatch(/; is it a PostgreSQL server/)
})

test.runIf(process.platform === 'linux')(
  'a DATA_DIR where no folder can be made is refused with one line',
  async () => {
    const line = await refusedStart({ DATA_DIR: '/proc/petstore/data' })
    expect(line).toMatch(/^DATA_DIR \/proc\/petstore\/data cannot be used: .*\n$/)
  },
)

test.each(['', '?sslmode=verify-full', '?sslmode=verify-full&sslnegotiation=direct'])(
  'a port that is not of PostgreSQL is refused with one line: %s',
  async (parameters) => {
    const server = createServer((socket) => void socket.on('error', () => {}).end('HTTP/1.1 400 Bad Request\r\n\r\n'))
    server.listen(0, '127.0.0.1')
    await once(server, 'listening')
    onTestFinished(() => void server.close())
    const { port } = server.address() as AddressInfo
    expect(await refusal(`postgresql://ann:secret@127.0.0.1:${port}/pets${parameters}`)).toMatch(
      /^DATABASE_URL: the database "pets" at 127\.0\.0\.1:\d+ cannot be used: .*; is it a PostgreSQL server, and does sslmode fit\?$/m,
    )
  },
)
