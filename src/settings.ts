import { isIP } from 'node:net'
import { z } from 'zod'

/** A failure to start that the user can fix: printed without a stack trace; exit code 1. */
export class StartupError extends Error {}

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
  DATABASE_URL: url(['postgresql:', 'postgres:']).optional().describe('a postgresql:// URL'),
  REDIS_URL: z
    .string()
    .refine((value) => value.split(',').every((part) => url(['redis:', 'rediss:']).safeParse(part.trim()).success))
    .optional()
    .describe('a redis:// or rediss:// URL, or several separated by commas for a cluster'),
  DATA_DIR: z.string().min(1).default('.petstore').describe('a writable folder'),
  EMBEDDED_DB_PORT: number(0, 65535, 5433),
  LOG_LEVEL: z
    .enum(['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'])
    .default('info')
    .describe('trace, debug, info, warn, error, fatal or silent'),
  TRUST_PROXY: number(0, 16, 0),
  CORS_ORIGINS: z
    .string()
    .transform((value) => value.split(',').map((origin) => origin.trim()))
    .refine((origins) => origins.every((origin) => origin === '*' || /^https?:\/\/[^/]+$/.test(origin)))
    .default(['*'])
    .describe('*, or origins such as https://app.example.com, separated by commas'),
  MAX_BODY_BYTES: number(1024, 104_857_600, 131_072),
  BAN_AFTER: number(1, 1_000_000, 10),
  BAN_SECONDS: number(1, 86_400, 300),
  PET_BY_ID_SUNSET: z
    .string()
    .regex(/^\d{4}-\d{2}-\d{2}(T.+)?$/)
    .transform((value) => new Date(value))
    .refine((date) => !Number.isNaN(date.getTime()))
    .default(new Date('2030-12-05'))
    .describe('a date such as 2030-12-05, or a date-time'),
  DRAIN_SECONDS: number(0, 3600, 0),
})

const consistent = settings.refine(({ PORT, ADMIN_PORT }) => ADMIN_PORT !== PORT, { path: ['ADMIN_PORT'] })

export type Settings = z.infer<typeof settings> & { BASE_URL: string }

/**
 * Reads the settings from environment variables. An empty variable counts as absent. The default of BASE_URL uses PORT.
 *
 * @throws StartupError that names every invalid setting, its value and the allowed values
 */
export function readSettings(environment: NodeJS.ProcessEnv = process.env): Settings {
  const given = Object.fromEntries(
    Object.keys(settings.shape).flatMap((name) => (environment[name] ? [[name, environment[name]]] : [])),
  )
  const result = consistent.safeParse(given)
  if (result.success)
    return { ...result.data, BASE_URL: result.data.BASE_URL ?? `http://localhost:${result.data.PORT}` }
  const names = [...new Set(result.error.issues.map((issue) => String(issue.path[0])))]
  const invalid = names.map((name) => {
    const allowed = settings.shape[name as keyof typeof settings.shape].description
    // The message may end up in a log, so it must not contain a password.
    const value = given[name]?.replace(/\/\/([^/@:]*):[^@]*@/, '//$1:***@')
    return `${name} is ${JSON.stringify(value)}; it must be ${allowed}`
  })
  throw new StartupError([...invalid, ...misspeltSettings(environment)].join('\n'))
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
  const known = Object.keys(settings.shape)
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
