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

/**
 * Every setting, once: its default, the allowed values (the description, which the error message prints) and its type.
 * A test compares the README's table with this list.
 */
export const settings = z.object({
  PORT: number(1, 65535, 3000),
  ADMIN_PORT: wholeNumber(1, 65535).optional().describe('a whole number from 1 to 65535 other than PORT'),
  HOST: z.string().min(1).default('0.0.0.0').describe('a host name or an address to listen on'),
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
  throw new StartupError(
    names
      .map((name) => {
        const allowed = settings.shape[name as keyof typeof settings.shape].description
        // The message may end up in a log, so it must not contain a password.
        const value = given[name]?.replace(/\/\/([^/@:]*):[^@]*@/, '//$1:***@')
        return `${name} is ${JSON.stringify(value)}; it must be ${allowed}`
      })
      .join('\n'),
  )
}
