import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll, describe, expect, test } from 'vitest'
import { parseRedisUrl } from '../src/engines/rate-limit/url.js'
import { misspeltSettings, readSettings, settings } from '../src/settings.js'
import { StartupError } from '../src/startup-error.js'

const refused = (env: Record<string, string>) => {
  try {
    readSettings(env)
  } catch (error) {
    expect(error).toBeInstanceOf(StartupError)
    return (error as Error).message.split('\n')
  }
  return []
}

describe('settings', () => {
  test.each([
    ['PORT', 1, 65_535],
    ['EMBEDDED_DB_PORT', 0, 65_535],
    ['TRUST_PROXY', 0, 16],
    ['MAX_BODY_BYTES', 1024, 104_857_600],
    ['BAN_AFTER', 1, 1_000_000],
    ['BAN_SECONDS', 1, 86_400],
    ['DRAIN_SECONDS', 0, 3600],
  ] as const)('%s accepts only whole numbers from %i to %i', (name, min, max) => {
    for (const value of [min, max]) expect(readSettings({ [name]: String(value) })[name]).toBe(value)
    for (const value of [min - 1, max + 1, 1.5, '1e3', ' 5', 'x'])
      expect(refused({ [name]: String(value) })).toEqual([
        `${name} is "${value}"; it must be a whole number from ${min} to ${max}`,
      ])
  })

  test('GATEWAYS accepts only whole numbers from 1 to 64, and more than 1 only with DATABASE_URL and REDIS_URL', () => {
    const servers = { DATABASE_URL: 'postgresql://h/d', REDIS_URL: 'redis://h' }
    expect(readSettings({}).GATEWAYS).toBe(1)
    expect(readSettings({ GATEWAYS: '1' }).GATEWAYS).toBe(1)
    for (const value of [1, 2, 64]) expect(readSettings({ ...servers, GATEWAYS: String(value) }).GATEWAYS).toBe(value)
    const must = 'it must be a whole number from 1 to 64'
    for (const value of [0, -1, 1.5, 65, 'x', '2 '])
      expect(refused({ ...servers, GATEWAYS: String(value) })).toEqual([`GATEWAYS is "${value}"; ${must}`])
    const { DATABASE_URL, REDIS_URL } = servers
    const alone = (without: string) => [`GATEWAYS is "2"; it must be 1 without ${without}`]
    expect(refused({ GATEWAYS: '2' })).toEqual(alone('DATABASE_URL and REDIS_URL'))
    expect(refused({ GATEWAYS: '2', DATABASE_URL })).toEqual(alone('REDIS_URL'))
    expect(refused({ GATEWAYS: '2', REDIS_URL })).toEqual(alone('DATABASE_URL'))
  })

  test.each([
    [
      'BASE_URL',
      ['https://api.example.com/v1', 'http://localhost:1'],
      ['api.example.com', 'ftp://x', 'https://x/?a=1', 'https://x/#a', "https://x/it's", 'https://ann@x'],
    ],
    ['DATABASE_URL', ['postgresql://a:b@h:1/d', 'postgres://h/d'], ['mysql://h/d', 'h:5432']],
    [
      'REDIS_URL',
      [
        'redis://h:1',
        'rediss://u:p@h:1/15',
        'redis://a:1,redis://b:1',
        'redis://[::1]:1',
        'redis+sentinel://a,b:1/name/3',
      ],
      [
        'h:6379',
        'redis://a:1,b',
        'http://h',
        'redis://',
        'redis:///1',
        'redis+sentinel:/a/name',
        'redis-sentinel://a/n',
      ],
    ],
    [
      'HOST',
      ['0.0.0.0', '::', 'fe80::1%eth0', 'localhost', 'pets.example.com', 'gateway_1', '1st'],
      ['http://localhost', 'localhost:3000', '[::1]', '256.0.0.1', '1.2.3', 'a b', 'a..b', '-a', 'ü'],
    ],
    ['LOG_LEVEL', ['trace', 'silent'], ['loud']],
    ['OTEL_EXPORTER_OTLP_ENDPOINT', ['http://collector:4318', 'https://c/otlp'], ['collector:4317', 'grpc://c']],
    ['OTEL_EXPORTER_OTLP_TRACES_ENDPOINT', ['http://collector:4318/v1/traces'], ['collector']],
    ['OTEL_EXPORTER_OTLP_PROTOCOL', ['http/json', 'http/protobuf'], ['grpc', 'http']],
    ['OTEL_EXPORTER_OTLP_TRACES_PROTOCOL', ['http/json', 'http/protobuf'], ['grpc']],
    ['OTEL_TRACES_EXPORTER', ['otlp', 'none'], ['zipkin', 'console', 'otlp,console']],
    ['OTEL_TRACES_SAMPLER', ['always_on', 'parentbased_traceidratio'], ['jaeger_remote', 'ALWAYS_ON']],
    ['OTEL_PROPAGATORS', ['tracecontext', 'tracecontext,baggage', 'none'], ['b3', 'tracecontext,b3']],
    ['OTEL_SDK_DISABLED', ['true', 'False'], ['1']],
    [
      'CORS_ORIGINS',
      ['*', 'https://a.example,http://b:1'],
      ['a.example', 'https://a.example/path', 'https://a:65536', 'https://ann@a.example', 'null'],
    ],
    [
      'PET_BY_ID_SUNSET',
      ['2031-01-31', '2031-01-31T12:00:00Z'],
      ['soon', '2031', '2031-13-01', '2031-02-30', '31.1.2031'],
    ],
  ])('%s accepts %j and rejects %j with the allowed values', (name, good, bad) => {
    for (const value of good) expect(refused({ [name]: value })).toEqual([])
    for (const value of bad)
      expect(refused({ [name]: value })).toEqual([
        expect.stringContaining(`${name} is ${JSON.stringify(value)}; it must be `),
      ])
  })

  test('one message names every invalid setting, HOST included, and those that look misspelt', () => {
    expect(refused({ PORT: 'x', HOST: 'a b', REDIS_URL: 'h', DATABSE_URL: 'postgresql://ann:secret@h/d' })).toEqual([
      'PORT is "x"; it must be a whole number from 1 to 65535',
      'HOST is "a b"; it must be a host name or an IP address to listen on, without scheme or port',
      'REDIS_URL is "h"; it must be a redis:// or rediss:// URL, several separated by commas for a cluster, or redis+sentinel://host,host/name',
      'DATABSE_URL is not a setting and has no effect; did you mean DATABASE_URL?',
    ])
  })

  test.each([
    ['DATABSE_URL', 'DATABASE_URL'],
    ['DATABASE_URI', 'DATABASE_URL'],
    ['REDISURL', 'REDIS_URL'],
    ['RATE_LIMIT_REDS_URL', 'REDIS_URL'],
    ['PETSTORE_LOG_LEVLE', 'LOG_LEVEL'],
    ['PROT', 'PORT'],
    ['port', 'PORT'],
    ['HOSTS', 'HOST'],
    ['BAN_SECOND', 'BAN_SECONDS'],
  ])('%s is taken for a misspelt %s', (name, setting) => {
    expect(misspeltSettings({ [name]: '1' })).toEqual([
      `${name} is not a setting and has no effect; did you mean ${setting}?`,
    ])
    expect(misspeltSettings({ [name]: '' })).toEqual([])
  })

  test('other variables of common environments are not', () => {
    const names =
      'HOME HOSTNAME HOSTTYPE PATH PWD LANG LOGNAME USER SHELL TERM DATABASE_NAME DB_URL PGHOST PGPORT POSTGRES_URL REDIS_HOST REDIS_PORT NODE_ENV TEST_DATABASE_URL TEST_REDIS_URL MY_LOG_LEVEL XDG_DATA_DIRS KUBERNETES_PORT PETSTORE_SERVICE_HOST PETSTORE_PORT npm_config_port OTEL_SERVICE_NAME OTEL_TRACES_SAMPLER_ARG OTEL_LOGS_EXPORTER OTEL_METRICS_EXPORTER OTEL_EXPORTER_OTLP_LOGS_ENDPOINT OTEL_EXPORTER_OTLP_METRICS_PROTOCOL OTEL_EXPORTER_OTLP_TIMEOUT OTEL_EXPORTER_OTLP_HEADERS'
    expect(misspeltSettings(Object.fromEntries(names.split(' ').map((name) => [name, '1'])))).toEqual([])
    expect(misspeltSettings(Object.fromEntries(Object.keys(settings.shape).map((name) => [name, '1'])))).toEqual([])
  })

  test.each(['https://a.test/@ann', 'https://a.test/?to=ann@a.test', 'https://a.test/x//ann@a.test'])(
    'CONTACT_URL can be %s, which has an @ but no user',
    (url) => {
      expect(readSettings({ CONTACT_URL: url }).CONTACT_URL).toBe(url)
      expect(readSettings({ CONTACT_URL: url.replace('/?', '?') }).CONTACT_URL).toBe(url)
    },
  )

  test('CONTACT_URL stays one link in Markdown', () => {
    const url = 'https://a.test/keys "(b)"?<c>=\\_d\\'
    expect(readSettings({ CONTACT_URL: url }).CONTACT_URL).toBe('https://a.test/keys%20%22(b)%22?%3Cc%3E=%5C_d%5C')
  })

  test.each([
    'javascript:alert(1)',
    'mailto:ann@example.com',
    'example.com/keys',
    'https://ann:secret@example.com',
    'https://ann@example.com',
  ])('CONTACT_URL, which everybody sees, cannot be %s', (url) => {
    expect(refused({ CONTACT_URL: url })).toEqual([
      `CONTACT_URL is "${url.replace('secret', '***')}"; it must be an http or https URL without user and password`,
    ])
  })

  test('CORS_ORIGINS are compared as browsers send them', () => {
    const given =
      'HTTPS://B.example:443, https://bücher.example,http://c.example:80,http://[::1]:8080, http://d.example:81'
    expect(readSettings({ CORS_ORIGINS: given }).CORS_ORIGINS).toEqual([
      'https://b.example',
      'https://xn--bcher-kva.example',
      'http://c.example',
      'http://[::1]:8080',
      'http://d.example:81',
    ])
    const wrong = 'https://a.example, http://[::1]:8080,ftp://b.example:443'
    expect(refused({ CORS_ORIGINS: wrong })).toEqual([
      expect.stringContaining(`CORS_ORIGINS is "${wrong}"; it must be`),
    ])
  })

  test('an error message does not contain the password of a URL', () => {
    expect(refused({ DATABASE_URL: 'mysql://ann:secret@host/pets' })).toEqual([
      'DATABASE_URL is "mysql://ann:***@host/pets"; it must be a postgresql:// URL that names one host, with %40 for @, %23 for #, %2F for / and %3F for ? in its password',
    ])
    for (const password of ['se@cret', 'se/cret', 'se:cret', 'se?cret', 'secret@', 'se#cret'])
      for (const url of [`mysql://ann:${password}@host/pets`, `postgresql://ann:${password}@[/pets`])
        expect(refused({ DATABASE_URL: url }).join()).not.toMatch(/se.?cret/)
    // Each of these is a URL that names another host.
    for (const password of ['p@se#cret', 'p@se/cret', 'p@se?cret', '1#se@cret', 'p@#secret'])
      for (const name of ['DATABASE_URL', 'DIRECT_URL'])
        expect([
          password,
          refused({ DATABASE_URL: 'postgresql://h/d', [name]: `postgresql://ann:${password}@host/pets` }).join(),
        ]).toEqual([
          password,
          expect.stringMatching(new RegExp(`^${name} is "postgresql://ann:\\*\\*\\*@host/pets"; .* with %40 for @,`)),
        ])
    expect(refused({ DATABASE_URL: 'mysql://h/d?password=secret&a=1' }).join()).not.toContain('secret')
    // Mistyped.
    for (const [url, shown] of [
      ['postgresql//u:se/cr@et@h/db', 'postgresql//u:***@h/db'],
      ['postgresql:/u:secret@h/db', 'postgresql:***@h/db'],
      ['postgresql:u:secret@h/db', 'postgresql:***@h/db'],
      ['postgresql:///u:secret@h/db', 'postgresql:///u:***@h/db'],
      ['u:secret@h/db', 'u:***@h/db'],
      [':secret@h:6379', ':***@h:6379'],
      ['host=h user=u password=secret', 'host=h user=u password=***'],
      ["host=h password = 'my secret' user=u", 'host=h password = *** user=u'],
      ['Server=h;Pwd=secret;Database=d', 'Server=h;Pwd=***'],
    ] as const)
      for (const name of ['DATABASE_URL', 'DIRECT_URL', 'REDIS_URL'])
        expect(refused({ DATABASE_URL: 'postgresql://h/d', [name]: url }).join()).toMatch(
          `${name} is ${JSON.stringify(shown)}; it must`,
        )
    for (const url of ['redis//:secret@h:6379', 'redis:/:secret@h', 'redis//secret@h', 'redis:secret@h', 'secret@h'])
      expect(refused({ REDIS_URL: url }).join()).not.toContain('secret')
    expect(refused({ DATABASE_URL: 'postgresql://ann:secret' }).join()).not.toContain('secret')
  })

  describe('from files', () => {
    const folder = mkdtempSync(join(tmpdir(), 'petstore-config-'))
    afterAll(() => rmSync(folder, { recursive: true }))
    const file = (name: string, text: string) => {
      writeFileSync(join(folder, name), text)
      return join(folder, name)
    }

    test.each([
      ['DATABASE_URL', 'postgresql://a:b@h/d'],
      ['REDIS_URL', 'redis://:b@h'],
      ['BASE_URL', 'https://pets.example.com'],
      ['CONTACT_URL', 'https://pets.example.com/keys'],
    ] as const)('%s is read from the file that %s_FILE names, without the line end', (name, url) => {
      expect(readSettings({ [`${name}_FILE`]: file('url', `${url}\n`) })[name]).toBe(url)
      expect(misspeltSettings({ [`${name}_FILE`]: 'x' })).toEqual([])
    })

    test('DIRECT_URL needs DATABASE_URL, from files or not', () => {
      const url = 'postgresql://a:b@h/d'
      const both = { DATABASE_URL_FILE: file('a', url), DIRECT_URL_FILE: file('b', url) }
      expect(readSettings(both)).toMatchObject({ DATABASE_URL: url, DIRECT_URL: url })
      expect(refused({ DIRECT_URL: url })).toEqual([
        expect.stringMatching(/^DIRECT_URL is .* without a pooler, with %40 .*, and needs DATABASE_URL$/),
      ])
    })

    test.each([
      ['that is missing', () => join(folder, 'none'), 'does not exist; it must be a file that holds the URL'],
      ['that is empty', () => file('empty', ' \n'), 'is empty; write the URL into it'],
      ['that is a folder', () => folder, 'is a folder; it must be a file that holds the URL'],
    ])('a file %s is refused with one line', (_, path, problem) => {
      expect(refused({ DATABASE_URL_FILE: path() })).toEqual([`DATABASE_URL_FILE is "${path()}", which ${problem}`])
    })

    test('both, and files of other settings, are refused; a bad URL is named without its password', () => {
      const path = file('bad', 'mysql://a:secret@h/d')
      expect(refused({ DATABASE_URL_FILE: path, DATABASE_URL: 'postgresql://h/d' })).toEqual([
        'DATABASE_URL_FILE and DATABASE_URL are both set; remove one of them',
      ])
      expect(refused({ PORT_FILE: path, LOG_LEVEL_FILE: path })).toEqual([
        'PORT_FILE is not a setting: only URLs are read from files; set PORT',
        'LOG_LEVEL_FILE is not a setting: only URLs are read from files; set LOG_LEVEL',
      ])
      expect(refused({ DATABASE_URL_FILE: path })).toEqual([
        'DATABASE_URL is "mysql://a:***@h/d"; it must be a postgresql:// URL that names one host, with %40 for @, %23 for #, %2F for / and %3F for ? in its password',
      ])
    })
  })

  const master = 'name the master that the Sentinels watch: redis+sentinel://host,host/name'
  const number = (example: string) => `end with the number of a database, such as ${example}, or without one`
  const hosts = 'have hosts such as redis.example.com, 10.0.0.1:6379 or [::1]'
  test.each<[url: string, must: string, shown?: string]>([
    ['redis+sentinel://a,b', master],
    ['redis+sentinel://a,b/', master],
    ['redis://h/one', number('/0')],
    ['redis://h/-1', number('/0')],
    ['redis://h/1/2', number('/0')],
    ['redis+sentinel://a/n/x', number('/name/0')],
    ['redis://h?db=3', 'have no parameter db, but only what is before the ?'],
    [
      'redis+sentinel://:secret@a/n?sentinelPasword=secret&x=1',
      'have no parameter sentinelPasword, but only sentinelUsername and sentinelPassword',
      'redis+sentinel://:***@a/n?sentinelPasword=***&x=1',
    ],
    ['redis://u:se/cr@et@h:0x1', hosts, 'redis://u:***@h:0x1'],
    ['redis://secret@h:65536', hosts, 'redis://***@h:65536'],
    ['redis://secret@h', 'have a password after its user: redis://:password@host', 'redis://***@h'],
    ['redis://:100%@h', 'have its login and name percent-encoded: %25 for a %', 'redis://:***@h'],
    [
      'redis://:secret@a,rediss://:secret@b',
      'have the same scheme in all its URLs: redis:// without TLS, rediss:// with it',
      'redis://:***@b',
    ],
    [
      'redis://:secret@a,redis://:secre@b',
      'have one login for all nodes of the cluster, in its first URL',
      'redis://:***@b',
    ],
    ['redis://a/1,redis://b', 'name no database: a cluster has only database 0'],
  ])(
    'REDIS_URL %s is refused in one line that says what to do (%s) and shows no password',
    (url, must, shown = url) => {
      expect(refused({ REDIS_URL: url })).toEqual([`REDIS_URL is "${shown}"; it must ${must}`])
    },
  )

  test('REDIS_URL has logins percent-encoded, and the ports of Redis and of Sentinels by default', () => {
    expect(parseRedisUrl('rediss+sentinel://ann:p%40s@a,[::1]:7,b/pets/3?sentinelPassword=q%26')).toEqual({
      kind: 'sentinel',
      tls: true,
      nodes: [
        { host: 'a', port: 26_379 },
        { host: '::1', port: 7 },
        { host: 'b', port: 26_379 },
      ],
      username: 'ann',
      password: 'p@s',
      db: 3,
      name: 'pets',
      sentinelPassword: 'q&',
    })
    expect(parseRedisUrl('redis://:p@a/, redis://b:7')).toMatchObject({
      kind: 'cluster',
      tls: false,
      nodes: [
        { host: 'a', port: 6379 },
        { host: 'b', port: 7 },
      ],
      password: 'p',
    })
  })

  test('an empty variable counts as absent', () => {
    const empty = Object.fromEntries(Object.keys(settings.shape).map((name) => [name, '']))
    expect(readSettings(empty)).toEqual(readSettings({}))
  })

  test('BASE_URL defaults to PORT, is normalized, and loses a trailing slash', () => {
    expect(readSettings({ PORT: '8080' }).BASE_URL).toBe('http://localhost:8080')
    expect(readSettings({ BASE_URL: 'https://api.example.com/v1/' }).BASE_URL).toBe('https://api.example.com/v1')
    const written = 'HTTPS://API.example.com/a\n b>"c/../v 1'
    expect(readSettings({ BASE_URL: written }).BASE_URL).toBe('https://api.example.com/v%201')
  })

  test('every setting describes its allowed values', () => {
    for (const [name, setting] of Object.entries(settings.shape)) expect(setting.description, name).toBeTruthy()
  })
})
