import { readFileSync } from 'node:fs'
import { attempt } from '../../../schema/kit/attempt.js'
import { StartupError } from '../../startup-error.js'
import { SESSION_OPTIONS, SESSION_PARAMETERS } from './pool/session.js'

/** What a URL of a PostgreSQL server says. */
export interface ServerUrl {
  /** For pg: with the parameters that it honours, and no others. Unless a pooler is between, it sets sessions (session.ts). */
  connectionString: string
  /** The same for Prisma Studio, which takes more parameters, and sends those that it does not know to the server. */
  url: string
  /** Names the database in messages; without the password. */
  name: string
  schema: string
  /** A pooler is between. Undefined: the URL does not say. */
  isPooled: boolean | undefined
  /** Parameters that have no effect. */
  ignored: string[]
}

type Values = [pattern: Pick<RegExp, 'test'>, inWords: string]

const anything: Values = [/^/, '']
const yesOrNo: Values = [/^(true|false)$/, 'true or false']
const TLS_MODES = 'verify-full (which require and verify-ca mean too), no-verify or disable'
const isPort = (text: string) => /^([1-9]\d*)?$/.test(text) && Number(text) <= 65_535

/** The parameters that are honoured, and their values. */
const HONOURED = new Map<string, Values>([
  ['schema', [/^[a-z_]\w{0,62}$/i, 'a name of letters, digits and underscores']],
  ['pgbouncer', yesOrNo],
  ['sslmode', [/^(disable|no-verify|require|verify-ca|verify-full)$/, TLS_MODES]],
  ['sslrootcert', anything],
  ['sslcert', anything],
  ['sslkey', anything],
  ['sslnegotiation', [/^(postgres|direct)$/, 'postgres or direct']],
  ['ssl', yesOrNo],
  ['uselibpqcompat', yesOrNo],
  ['application_name', anything],
  ['options', anything],
  ['host', anything],
  ['port', [{ test: isPort }, 'a number from 1 to 65535']],
  ['user', anything],
  ['password', anything],
])

/** Others that decide where data goes or how safely, in libpq, Prisma and other drivers. */
const DECISIVE =
  /^(ssl|gss|krb|tls|host|target_|load_balance|service|passfile|require|channel_binding|min_protocol|replication|dbname|database|search_path|currentSchema|connection_limit|pool|statement_cache|prepare)/i

const FILES = ['sslrootcert', 'sslcert', 'sslkey']

/**
 * Reads the URL of a server.
 *
 * @throws StartupError with one line that names the setting, the parameter and what to do
 */
export function readServerUrl(setting: string, text: string): ServerUrl {
  const refuse = (reason: string) => new StartupError(`${setting}: ${reason}`)
  const url = new URL(text)
  const parameters = url.searchParams
  const names = [...new Set(parameters.keys())]
  for (const name of names) {
    if (!HONOURED.has(name) && DECISIVE.test(name))
      throw refuse(
        `the parameter ${name} is not supported, and decides where data goes or how safely; remove it. Supported are ${[...HONOURED.keys()].join(', ')}`,
      )
    const [value = '', ...more] = parameters.getAll(name)
    if (more.length > 0) throw refuse(`the parameter ${name} is given twice`)
    const [pattern, inWords] = HONOURED.get(name) ?? anything
    if (!pattern.test(value)) throw refuse(`the parameter ${name} is ${JSON.stringify(value)}; it must be ${inWords}`)
  }
  for (const name of FILES) {
    const file = parameters.get(name)
    if (file && !(name === 'sslrootcert' && file === 'system')) assertReadable(file, name, refuse)
  }
  const [host, database, user] = [url.hostname, url.pathname.slice(1), url.username].map(decoded)
  const hosts = parameters.get('host') || host || 'localhost'
  if (hosts.includes(',')) throw refuse(`it names several hosts (${hosts}); name one address that leads to the primary`)
  const isPooled = parameters.has('pgbouncer') ? parameters.get('pgbouncer') === 'true' : undefined
  if (isPooled && parameters.has('options'))
    throw refuse('a pooler refuses options; remove pgbouncer=true, or set them for the role: ALTER ROLE … SET …')
  const schema = parameters.get('schema') ?? 'public'
  const port = parameters.get('port') || url.port || '5432'
  const ignored = names.filter((name) => !HONOURED.has(name))
  if (!isPooled) parameters.set('options', `${parameters.get('options') ?? ''} ${SESSION_OPTIONS}`.trim())
  const forStudio = new URL(url)
  if (isPooled) for (const [name, value] of Object.entries(SESSION_PARAMETERS)) forStudio.searchParams.set(name, value)
  normalizeTls(parameters)
  for (const name of [...ignored, 'schema', 'pgbouncer']) parameters.delete(name)
  const where = schema === 'public' ? '' : ` (schema ${schema})`
  const name = `${JSON.stringify(database || parameters.get('user') || user)}${where} at ${hosts}:${port}`
  return { connectionString: url.href, url: forStudio.href, name, schema, isPooled, ignored }
}

/** pg takes a % that encodes nothing as it is. */
const decoded = (text: string) => attempt(() => decodeURIComponent(text)) ?? text

function assertReadable(file: string, name: string, refuse: (reason: string) => StartupError): void {
  try {
    readFileSync(file)
  } catch (error) {
    throw refuse(`${name} ${file} cannot be read (${(error as NodeJS.ErrnoException).code})`)
  }
}

/** Says what pg does anyway, without its warning: it verifies a server unless it is told not to. */
function normalizeTls(parameters: URLSearchParams): void {
  const [ssl, mode] = [parameters.get('ssl'), parameters.get('sslmode')]
  parameters.delete('ssl')
  if (parameters.get('sslrootcert') === 'system') parameters.delete('sslrootcert')
  if (ssl && !mode) parameters.set('sslmode', ssl === 'true' ? 'verify-full' : 'disable')
  const compatible = parameters.get('uselibpqcompat') === 'true'
  if (!compatible && /^(require|verify-ca)$/.test(mode ?? '')) parameters.set('sslmode', 'verify-full')
}

const REASONS: Record<string, string> = {
  ECONNREFUSED: 'connection refused; is the server running?',
  ENOENT: 'there is no socket; is the server running, and is host its folder?',
  ENOTFOUND: 'the host name is unknown',
  EAI_AGAIN: 'the host name cannot be resolved',
  ETIMEDOUT: 'the server does not respond',
}

/** The reason to refuse a server whose connections do not have backends of their own. */
export const SHARED = 'its connections are shared'

const ADVICE: [RegExp, string][] = [
  [
    /unsupported startup parameter|its connections are shared/,
    'a pooler such as PgBouncer is between: add ?pgbouncer=true to it, and set DIRECT_URL to the server itself',
  ],
  [/does not support SSL/, 'connect without TLS (sslmode=disable), or turn it on in the server'],
  [
    /no encryption|SSL required|insecure connection/i,
    'the server wants TLS: add ?sslmode=verify-full, and sslrootcert=FILE if its certificate is signed by a CA of your own; or admit this user and address in its pg_hba.conf',
  ],
  [
    /altnames/,
    'connect by a name that the certificate has, or encrypt without verifying the server (sslmode=no-verify)',
  ],
  [
    /self-signed|unable to (verify|get)|certificate/i,
    'trust its CA (sslmode=verify-full&sslrootcert=FILE), or encrypt without verifying the server (sslmode=no-verify)',
  ],
  [
    /Connection terminated|ECONNRESET|socket disconnected|packet length|wrong version|establishing an SSL/i,
    'is it a PostgreSQL server, and does sslmode fit?',
  ],
  [/client password must be/, 'the server wants a password: add it to the URL'],
  [
    /password authentication failed/,
    'correct user and password; in the URL, characters such as @ : / ? # % are percent-encoded',
  ],
  [/no pg_hba\.conf entry/, 'allow this user, database and address in pg_hba.conf of the server'],
  [/^3D000 /, 'create it, or correct the URL'],
  [/role ".*" does not exist/, 'create it, or correct the user in the URL'],
  [
    /canceling statement due to/,
    'another session may hold a lock on what it needs (see pg_stat_activity), or a statement_timeout of the role or the database ends it: ALTER ROLE … RESET statement_timeout',
  ],
  [/permission denied/, 'see “Rights of the role” in docs/operators.md'],
]

/** The error as one line that names the database and what to do, but never the password. */
export function databaseError(error: unknown, setting: string, name: string): StartupError {
  const { code = '', message } = error as NodeJS.ErrnoException
  const isLate = code === '' && /timeout/i.test(message) && !message.startsWith('canceling')
  const line = REASONS[isLate ? 'ETIMEDOUT' : code] ?? message.replaceAll(/\s+/g, ' ')
  const advice = ADVICE.find(([pattern]) => pattern.test(`${code} ${message}`))?.[1]
  const reason = advice ? `${line}; ${advice}` : line
  return new StartupError(`${setting}: the database ${name} cannot be used: ${reason}`, { cause: error })
}
