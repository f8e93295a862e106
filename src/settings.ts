import { readFileSync } from 'node:fs'
import { isIP } from 'node:net'
import * as z from 'zod'
import { anyOf } from '../schema/kit/input/problems.js'
import { parseRedisUrl, REDIS_URL_FORMS } from './engines/rate-limit/index.js'
import { StartupError } from './startup-error.js'

const wholeNumber = (min: number, max: number) =>
  z
    .string()
    .regex(/^\d+$/)
    .transform(Number)
    .refine((value) => value >= min && value <= max)

const number = (min: number, max: number, fallback: number) =>
  wholeNumber(min, max).default(fallback).describe(`a whole number from ${min} to ${max}`)

const url = (protocols: string[]) =>
  z.string().refine((value) => URL.canParse(value) && protocols.includes(new URL(value).protocol))

/** A password that was not encoded ends where its first such character is: the rest would be taken for a host. */
const postgresUrl = url(['postgresql:', 'postgres:']).refine((value) => {
  if (!URL.canParse(value)) return false
  const { hash, pathname, searchParams } = new URL(value)
  return hash === '' && ![pathname, ...searchParams.keys()].some((part) => part.includes('@'))
})
const ENCODED = '%40 for @, %23 for #, %2F for / and %3F for ? in its password'

const collector = url(['http:', 'https:']).optional().describe('an http or https URL of a collector of OpenTelemetry')
const protocol = z.enum(['http/protobuf', 'http/json'])
const PROTOCOLS = 'http/protobuf (its port is 4318) or http/json'
const LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent']
const SAMPLERS = ['always_on', 'always_off', 'traceidratio'].flatMap((root) => [root, `parentbased_${root}`])

const isOrigin = (value: string) => /^https?:\/\/[^/?#@\\]+$/i.test(value) && URL.canParse(value)

/** An address, or a name (RFC 1123). Four numbers that are not an address are not a name either. */
const isHost = (value: string) =>
  isIP(value) > 0 ||
  (value.split('.').every((label) => /^\w([\w-]{0,61}\w)?$/.test(label)) && !/(^|\.)\d+$/.test(value))

/**
 * Every setting, once: its default, the allowed values (the description, which the error message prints) and its type.
 * A test compares docs/settings.md with this list.
 */
export const settings = z.object({
  PORT: number(1, 65535, 3000),
  ADMIN_PORT: wholeNumber(1, 65535).optional().describe('a whole number from 1 to 65535 other than PORT'),
  GATEWAYS: number(1, 64, 1),
  HOST: z
    .string()
    .refine(isHost)
    .default('0.0.0.0')
    .describe('a host name or an IP address to listen on, without scheme or port'),
  BASE_URL: url(['http:', 'https:'])
    // An apostrophe would end the quoted URLs in shell commands.
    .refine((value) => !/[?#']|\/\/[^/]*@/.test(value))
    .transform((value) => (URL.canParse(value) ? new URL(value).href.replace(/\/+$/, '') : value))
    .optional()
    .describe('an http or https URL without user, password, query, fragment or apostrophe'),
  DATABASE_URL: postgresUrl.optional().describe(`a postgresql:// URL that names one host, with ${ENCODED}`),
  DIRECT_URL: postgresUrl
    .optional()
    .describe(
      `a postgresql:// URL that leads to the database of DATABASE_URL without a pooler, with ${ENCODED}, and needs DATABASE_URL`,
    ),
  REDIS_URL: z
    .string()
    .superRefine((value, context) => {
      try {
        parseRedisUrl(value)
      } catch (error) {
        context.addIssue({ code: 'custom', params: { must: (error as Error).message } })
      }
    })
    .optional()
    .describe(REDIS_URL_FORMS),
  INSTALLATION_ID: z
    .string()
    .regex(/^[\w-]{1,64}$/)
    .optional()
    .describe('1 to 64 letters, digits, hyphens and underscores'),
  DATA_DIR: z.string().min(1).default('.petstore').describe('a writable folder'),
  EMBEDDED_DB_PORT: number(0, 65535, 5433),
  LOG_LEVEL: z.enum(LEVELS).default('info').describe(anyOf(LEVELS)),
  TRUST_PROXY: number(0, 16, 0),
  CORS_ORIGINS: z
    .string()
    .transform((value) => value.split(',').map((origin) => origin.trim()))
    .refine((origins) => origins.every((origin) => origin === '*' || isOrigin(origin)))
    // As browsers send it: in lower case, without the default port, names in ASCII.
    .transform((origins) => origins.map((origin) => (isOrigin(origin) ? new URL(origin).origin : origin)))
    .default(['*'])
    .describe('*, or origins such as https://app.example.com, separated by commas'),
  MAX_BODY_BYTES: number(1024, 104_857_600, 131_072),
  BAN_AFTER: number(1, 1_000_000, 10),
  BAN_SECONDS: number(1, 86_400, 300),
  PET_BY_ID_SUNSET: z
    .union([z.iso.date(), z.iso.datetime({ local: true, offset: true })])
    // JavaScript takes a time without an offset for local time.
    .transform((value) => new Date(/T[^Z+-]+$/.test(value) ? `${value}Z` : value))
    .default(new Date('2030-12-05'))
    .describe('a date such as 2030-12-05, or a date-time'),
  CONTACT_URL: url(['http:', 'https:'])
    .refine((value) => !URL.canParse(value) || new URL(value).username + new URL(value).password === '')
    // Markdown would read a backslash as the beginning of another character.
    .transform((value) => (URL.canParse(value) ? new URL(value).href.replaceAll('\\', '%5C') : value))
    .optional()
    .describe('an http or https URL without user and password'),
  DRAIN_SECONDS: number(0, 3600, 0),
  // OpenTelemetry's. Its SDK reads all of them itself; here are those of which it would ignore values without a word.
  OTEL_SDK_DISABLED: z
    .string()
    .toLowerCase()
    .pipe(z.enum(['true', 'false']))
    .default('false')
    .describe('true or false'),
  OTEL_EXPORTER_OTLP_ENDPOINT: collector,
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: collector,
  OTEL_EXPORTER_OTLP_PROTOCOL: protocol.default('http/protobuf').describe(PROTOCOLS),
  OTEL_EXPORTER_OTLP_TRACES_PROTOCOL: protocol.optional().describe(PROTOCOLS),
  OTEL_TRACES_EXPORTER: z.enum(['otlp', 'none']).default('otlp').describe('otlp or none'),
  OTEL_TRACES_SAMPLER: z.enum(SAMPLERS).default('parentbased_always_on').describe(anyOf(SAMPLERS)),
  OTEL_PROPAGATORS: z
    .enum(['tracecontext', 'tracecontext,baggage', 'none'])
    .default('tracecontext')
    .describe('tracecontext; tracecontext,baggage, which is the same; or none'),
})

const consistent = settings
  .refine(({ PORT, ADMIN_PORT }) => ADMIN_PORT !== PORT, { path: ['ADMIN_PORT'] })
  .superRefine(({ GATEWAYS, DATABASE_URL, REDIS_URL }, context) => {
    const missing = Object.entries({ DATABASE_URL, REDIS_URL }).flatMap(([name, value]) => (value ? [] : name))
    if (GATEWAYS === 1 || missing.length === 0) return
    const must = `be 1 without ${missing.join(' and ')}`
    context.addIssue({ code: 'custom', path: ['GATEWAYS'], params: { must } })
  })
  .refine(({ DATABASE_URL, DIRECT_URL }) => DATABASE_URL || !DIRECT_URL, { path: ['DIRECT_URL'] })

export type Settings = z.infer<typeof settings> & { BASE_URL: string }

/** Where spans are exported to, and how; undefined if nowhere. */
export function collectorOf(settings: Settings) {
  if (settings.OTEL_SDK_DISABLED === 'true' || settings.OTEL_TRACES_EXPORTER === 'none') return
  const url = settings.OTEL_EXPORTER_OTLP_TRACES_ENDPOINT ?? settings.OTEL_EXPORTER_OTLP_ENDPOINT
  if (url === undefined) return
  return {
    url,
    protocol: settings.OTEL_EXPORTER_OTLP_TRACES_PROTOCOL ?? settings.OTEL_EXPORTER_OTLP_PROTOCOL,
    continuesTraces: settings.OTEL_PROPAGATORS.includes('tracecontext'),
  }
}

/**
 * Reads the settings from environment variables. An empty variable counts as absent. The default of BASE_URL uses PORT.
 *
 * @throws StartupError that names every invalid setting, its value and the allowed values
 */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const problems: string[] = []
  const given: Record<string, string> = {}
  for (const name of Object.keys(settings.shape)) {
    const value = environment[`${name}_FILE`] ? readFile(name, environment, problems) : environment[name]
    if (value) given[name] = value
  }
  const result = consistent.safeParse(given)
  if (result.success && problems.length === 0)
    return { ...result.data, BASE_URL: result.data.BASE_URL ?? `http://localhost:${result.data.PORT}` }
  const invalid = result.error?.issues.map((issue) => {
    const name = String(issue.path[0])
    const must = issue.code === 'custom' && issue.params?.must
    const allowed = must || `be ${settings.shape[name as keyof typeof settings.shape].description}`
    return `${name} is ${JSON.stringify(withoutSecrets(given[name] as string))}; it must ${allowed}`
  })
  throw new StartupError([...problems, ...new Set(invalid), ...misspeltSettings(environment)].join('\n'))
}

/**
 * The message may end up in a log. A password may have been pasted as it is, whatever its characters are, and that of Redis
 * where its user belongs.
 */
const withoutSecrets = (value: string) =>
  value
    .replace(/(:\/{2,}[^/@:]*:).*@/s, '$1***@')
    // The scheme is mistyped, or there is none.
    .replace(/^(?!mailto:|.*:\/\/)([^:@]*:)?.*@/s, '$1***@')
    .replace(/\b((?:pas|pwd|secret|token)\w*\s*=\s*)('[^']*'?|\S+)/gi, '$1***')
    .replace(/(:\/\/[^/@:[]*:)(?!\d+(?:[/?,]|$)|\*|\/\/)[^/]*/, '$1***')
    .replace(/(redis[^/]*:\/\/)[^/@:]+@/g, '$1***@')
    .replace(/([?&][^=&]*(?:pas|pwd|secret|token|key)[^=&]*=)[^&]*/gi, '$1***')

/** URLs have passwords, which containers get as files. */
const hasFile = (name: string) => name.endsWith('_URL')

/** The value of a setting that a file holds, as `<name>_FILE` says; a problem if that is not possible. */
function readFile(name: string, environment: NodeJS.ProcessEnv, problems: string[]): string | undefined {
  const file = environment[`${name}_FILE`] as string
  const problem = (reason: string) => void problems.push(`${name}_FILE ${reason}`)
  if (!hasFile(name)) return problem(`is not a setting: only URLs are read from files; set ${name}`)
  if (environment[name]) return problem(`and ${name} are both set; remove one of them`)
  try {
    const text = readFileSync(file, 'utf8').trim()
    return text || problem(`is ${JSON.stringify(file)}, which is empty; write the URL into it`)
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    const what = code === 'EISDIR' ? 'is a folder' : code === 'ENOENT' ? 'does not exist' : `cannot be read (${code})`
    problem(`is ${JSON.stringify(file)}, which ${what}; it must be a file that holds the URL`)
  }
}

/** Whether `b` is `a` with at most `edits` characters added, left out, replaced or swapped with the next one. */
function isNear(a: string, b: string, edits: number): boolean {
  if (a[0] === b[0]) return a === b || isNear(a.slice(1), b.slice(1), edits)
  if (edits === 0) return false
  const near = (a: string, b: string) => isNear(a, b, edits - 1)
  const [restOfA, restOfB] = [a.slice(1), b.slice(1)]
  const swapped = restOfA.charAt(0) + a.charAt(0) + restOfA.slice(1)
  return near(a, restOfB) || near(restOfA, b) || near(restOfA, restOfB) || near(swapped, b)
}

/** Prefixes of variables that desktops and npm set. */
const FOREIGN = /^(XDG|npm)_/i

/**
 * Finds variables whose name, or the end of whose name, is nearly that of a setting. They have no effect, which is easily
 * missed.
 */
export function misspeltSettings(environment: NodeJS.ProcessEnv = process.env): string[] {
  const names = Object.keys(settings.shape)
  const known = [...names, ...names.map((name) => `${name}_FILE`)]
  return Object.keys(environment).flatMap((name) => {
    if (known.includes(name) || FOREIGN.test(name) || !environment[name]) return []
    const upper = name.toUpperCase()
    const likely = known.find((setting) => {
      if (isNear(upper, setting, setting.length > 5 ? 2 : 1)) return true
      // MY_DATABASE_URL is right for another program, MY_DATABSE_URL for none.
      const ends = [-1, 0, 1].map((more) => upper.slice(-setting.length - more)).filter((end) => end !== setting)
      return setting.includes('_') && ends.some((end) => name.endsWith(`_${end}`) && isNear(end, setting, 1))
    })
    return likely ? [`${name} is not a setting and has no effect; did you mean ${likely}?`] : []
  })
}
