import { describe, expect, test } from 'vitest'
import { misspeltSettings, readSettings, StartupError, settings } from '../src/settings.js'

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

  test.each([
    [
      'BASE_URL',
      ['https://api.example.com/v1', 'http://localhost:1'],
      ['api.example.com', 'ftp://x', 'https://x/?a=1', 'https://x/#a', "https://x/it's", 'https://ann@x'],
    ],
    ['DATABASE_URL', ['postgresql://a:b@h:1/d', 'postgres://h/d'], ['mysql://h/d', 'h:5432']],
    [
      'REDIS_URL',
      ['redis://h:1', 'rediss://u:p@h:1', 'redis://a:1,redis://b:1'],
      ['h:6379', 'redis://a:1,b', 'http://h'],
    ],
    [
      'HOST',
      ['0.0.0.0', '::', 'fe80::1%eth0', 'localhost', 'pets.example.com', 'gateway_1', '1st'],
      ['http://localhost', 'localhost:3000', '[::1]', '256.0.0.1', '1.2.3', 'a b', 'a..b', '-a', 'ü'],
    ],
    ['LOG_LEVEL', ['trace', 'silent'], ['loud']],
    ['CORS_ORIGINS', ['*', 'https://a.example,http://b:1'], ['a.example', 'https://a.example/path']],
    ['PET_BY_ID_SUNSET', ['2031-01-31', '2031-01-31T12:00:00Z'], ['soon', '2031', '2031-13-01', '31.1.2031']],
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
      'REDIS_URL is "h"; it must be a redis:// or rediss:// URL, or several separated by commas for a cluster',
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
      'HOME HOSTNAME HOSTTYPE PATH PWD LANG LOGNAME USER SHELL TERM DATABASE_NAME DB_URL PGHOST PGPORT POSTGRES_URL REDIS_HOST REDIS_PORT NODE_ENV TEST_DATABASE_URL TEST_REDIS_URL MY_LOG_LEVEL XDG_DATA_DIRS KUBERNETES_PORT PETSTORE_SERVICE_HOST PETSTORE_PORT npm_config_port'
    expect(misspeltSettings(Object.fromEntries(names.split(' ').map((name) => [name, '1'])))).toEqual([])
    expect(misspeltSettings(Object.fromEntries(Object.keys(settings.shape).map((name) => [name, '1'])))).toEqual([])
  })

  test('an error message does not contain the password of a URL', () => {
    expect(refused({ DATABASE_URL: 'mysql://ann:secret@host/pets' })).toEqual([
      'DATABASE_URL is "mysql://ann:***@host/pets"; it must be a postgresql:// URL',
    ])
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
