import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { readServerUrl } from '../src/engines/postgres/server-url.js'
import { temporaryFolder } from './support/process.js'

const read = (parameters: string, base = 'postgresql://ann:secret@db.example.com/shop') =>
  readServerUrl('DATABASE_URL', base + parameters)
const refusal = (parameters: string, base?: string) => {
  try {
    read(parameters, base)
  } catch (error) {
    expect((error as Error).message).not.toContain('secret')
    return (error as Error).message
  }
  throw new Error('accepted')
}
/** What pg does with it. */
const tls = (parameters: string) => new pg.Client(read(parameters).connectionString).ssl as unknown

describe('a parameter of DATABASE_URL', () => {
  test('that decides where data goes or how safely is honoured', () => {
    expect(read('')).toMatchObject({ schema: 'public', isPooled: undefined, ignored: [] })
    expect(read('?schema=petstore&pgbouncer=true')).toMatchObject({ schema: 'petstore', isPooled: true })
    expect(read('?pgbouncer=false').isPooled).toBe(false)
    expect(read('?schema=petstore').name).toBe('"shop" (schema petstore) at db.example.com:5432')
    expect(read('?host=/var/run/postgresql&port=5433').name).toBe('"shop" at /var/run/postgresql:5433')
  })

  test.each([
    ...['hostaddr=10.0.0.1', 'target_session_attrs=read-write', 'load_balance_hosts=random', 'service=shop'],
    ...['dbname=other', 'sslaccept=strict', 'sslidentity=x', 'sslpassword=secret', 'sslcrl=x', 'gssencmode=require'],
    ...['ssl_min_protocol_version=TLSv1.3', 'channel_binding=require', 'requirepeer=postgres', 'connection_limit=5'],
    ...['pool_timeout=5', 'statement_cache_size=0'],
  ])('or is refused by name: %s', (parameter) => {
    expect(refusal(`?${parameter}`)).toMatch(
      `DATABASE_URL: the parameter ${parameter.split('=')[0]} is not supported, and decides where data goes or how safely; remove it.`,
    )
  })

  test.each([
    ['schema=', 'schema is ""; it must be a name of letters, digits and underscores'],
    ['schema=a"b', 'schema is "a\\"b"; it must be a name'],
    ['pgbouncer=yes', 'pgbouncer is "yes"; it must be true or false'],
    ['sslmode=prefer', 'sslmode is "prefer"; it must be verify-full'],
    ['ssl=no-verify', 'ssl is "no-verify"; it must be true or false'],
    ['schema=a&schema=b', 'schema is given twice'],
    ['port=99999', 'port is "99999"; it must be a number from 1 to 65535'],
    ['port=0', 'port is "0"; it must be a number'],
  ])('with a value that is not supported is refused: %s', (parameter, reason) => {
    expect(refusal(`?${parameter}`)).toContain(`DATABASE_URL: the parameter ${reason}`)
  })

  test('that decides neither is named, and does not reach the server', () => {
    const { ignored, connectionString } = read('?connect_timeout=5&schema=x&constructor=1&statement_timeout=0')
    expect(ignored).toEqual(['connect_timeout', 'constructor', 'statement_timeout'])
    expect([...new URL(connectionString).searchParams.keys()]).toEqual(['options'])
  })

  test('cannot take effect instead of what every session is set to', () => {
    const { connectionString } = read('?options=-c%20timezone%3DEurope/Berlin%20-c%20work_mem%3D8MB')
    expect(new pg.Client(connectionString)).toMatchObject({
      connectionParameters: {
        options: expect.stringMatching(
          /^-c timezone=Europe\/Berlin -c work_mem=8MB -c TimeZone=UTC -c DateStyle=ISO,\\ MDY /,
        ),
      },
    })
  })

  test('cannot be a startup parameter behind a pooler', () => {
    expect(refusal('?pgbouncer=true&options=-c%20role%3Dx')).toMatch('a pooler refuses options')
  })
})

test('several hosts are refused with one line; a % that encodes nothing is taken as it is', () => {
  for (const [parameters = '', url] of [['', 'postgresql://ann:secret@a,b/shop'], ['?host=a,b']])
    expect(refusal(parameters, url)).toBe(
      'DATABASE_URL: it names several hosts (a,b); name one address that leads to the primary',
    )
  const { name, connectionString } = read('', 'postgresql://ann:100%@h/50%off')
  expect(name).toBe('"50%off" at h:5432')
  expect(new pg.Client(connectionString)).toMatchObject({ password: '100%', database: '50%off' })
})

describe('TLS', () => {
  test('verifies the server unless sslmode says otherwise', () => {
    expect(tls('')).toBe(false)
    expect(tls('?sslmode=disable')).toBe(false)
    expect(tls('?ssl=false')).toBe(false)
    const verifying = ['sslmode=verify-full', 'sslmode=require', 'sslmode=verify-ca', 'ssl=true']
    for (const mode of [...verifying, 'sslmode=verify-full&sslrootcert=system']) expect(tls(`?${mode}`)).toEqual({})
    expect(tls('?sslmode=no-verify')).toEqual({ rejectUnauthorized: false })
    expect(tls('?sslmode=require&uselibpqcompat=true')).toEqual({ rejectUnauthorized: false })
  })

  test('takes the files of certificates, and refuses one that cannot be read', async () => {
    const file = join(await temporaryFolder(), 'ca.pem')
    expect(refusal(`?sslmode=verify-full&sslrootcert=${file}`)).toBe(
      `DATABASE_URL: sslrootcert ${file} cannot be read (ENOENT)`,
    )
    writeFileSync(file, 'a certificate')
    expect(tls(`?sslmode=verify-full&sslrootcert=${file}`)).toEqual({ ca: 'a certificate' })
  })
})
