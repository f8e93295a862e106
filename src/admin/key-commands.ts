import type { Access, ApiKey, Prisma } from '../../prisma/generated/client/client.js'
import { MAX_INT } from '../../schema/kit/input/rules.js'
import type { Database } from '../gateway/database/index.js'
import { createSecret, isOver, keySubject, writeKeys } from '../gateway/keys/index.js'
import type { Settings } from '../settings.js'
import { StartupError } from '../startup-error.js'
import { type Fields, render, text } from './table.js'

// The commands that create, show and change keys.

/** The options of all commands. Each command has those that command-line.ts gives it. */
export interface Options extends Pick<ApiKey, 'name' | 'plan' | 'access'> {
  json?: boolean
  expires?: Date
  minuteLimit?: number
  dayLimit?: number
  /** In seconds. */
  grace: number
  for: number
  days?: number
  hours?: number
}

export interface Call {
  database: Database
  settings: Pick<Settings, 'REDIS_URL' | 'INSTALLATION_ID'>
  options: Options
  /** Writes a line to standard error. */
  warn: (message: string) => void
}

/** A command with its arguments, as far as it has them. It returns what it prints. */
export type Action = (call: Call, idOrPrefix: string, value: string) => Promise<string>

/** Only an Enterprise key has limits of its own, and it needs both. Any other plan clears them. */
function limitsFor(plan: ApiKey['plan'], { minuteLimit, dayLimit }: Options) {
  if (plan === 'Enterprise') {
    if (minuteLimit && dayLimit) return { minuteLimit, dayLimit }
    throw new StartupError('An Enterprise key needs both --minute-limit and --day-limit.')
  }
  if (minuteLimit || dayLimit)
    throw new StartupError(`--minute-limit and --day-limit are for Enterprise only; the plan is ${plan}.`)
  return { minuteLimit: null, dayLimit: null }
}

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000)

export const bannedUntil = ({ bannedUntil: until }: ApiKey) => (isOver(until) ? null : until)

export function state(key: ApiKey) {
  if (isOver(key.revokedAt)) return 'revoked'
  if (isOver(key.expiresAt)) return 'expired'
  return bannedUntil(key) ? 'banned' : 'active'
}

/** The fields of a key that are printed: all but its hash. */
function printable(key: ApiKey): Fields {
  const { hash: _, ...fields } = key
  const [minute, day] = keySubject(key).windows
  const limits = { minuteLimit: minute?.limit, dayLimit: day?.limit }
  return { ...fields, ...limits, bannedUntil: bannedUntil(key), state: state(key) }
}

/** The prefix in a text: a prefix, its digits, or a whole key. */
export function prefixIn(text = ''): string | undefined {
  const [, ofKey, digits = ofKey] = /^petstore_([0-9a-f]{8})[0-9a-f]*$|^([0-9a-f]{8})$/.exec(text) ?? []
  return digits && `petstore_${digits}`
}

/** Finds a key by its id, its prefix, the digits of its prefix, or the whole key. */
export async function find({ prisma: { apiKey } }: Database, idOrPrefix: string): Promise<ApiKey> {
  const id = /^\d{1,10}$/.test(idOrPrefix) ? Number(idOrPrefix) : 0
  const prefix = prefixIn(idOrPrefix)
  const key =
    (id <= MAX_INT && (await apiKey.findUnique({ where: { id } }))) ||
    (prefix && (await apiKey.findUnique({ where: { prefix } })))
  if (key) return key
  throw new StartupError(
    `There is no key with the id or prefix ${JSON.stringify(idOrPrefix)}. List all keys: npm run keys -- list`,
  )
}

/** A new key, and for people what to do with it. */
const renderNew = ({ id, name, plan, prefix }: ApiKey, key: string, json: boolean | undefined, advice: string) =>
  render({ id, name, plan, prefix, key }, json) + (json ? '' : `${advice}\n`)

/** A command that changes a key and shows it. */
const change =
  (decide: (key: ApiKey, options: Options, value: string) => Prisma.ApiKeyUpdateInput): Action =>
  async ({ database, options }, idOrPrefix, value) => {
    const key = await find(database, idOrPrefix)
    const data = decide(key, options, value)
    const write = ({ apiKey }: Prisma.TransactionClient) => apiKey.update({ where: { id: key.id }, data })
    return render(printable(await writeKeys(database.prisma, 'command line', write)), options.json)
  }

export const keyCommands = {
  async create({ database, options }) {
    const { name, plan, access, expires, json } = options
    const { key, prefix, hash } = createSecret()
    const data = { name, plan, access, prefix, hash, expiresAt: expires, ...limitsFor(plan, options) }
    const row = await writeKeys(database.prisma, 'command line', ({ apiKey }) => apiKey.create({ data }))
    return renderNew(row, key, json, 'Copy the key now. It cannot be shown again: only its hash is stored.')
  },
  async list({ database, options: { name, ...options } }) {
    // An underscore and a percent sign are no wildcards.
    const contains = name?.replace(/[\\%_]/g, '\\$&')
    const where = { name: { contains, mode: 'insensitive' } } as const
    const keys = await database.prisma.apiKey.findMany({ where, orderBy: { id: 'asc' } })
    const all = keys.length === 0 && name && !options.json ? await database.prisma.apiKey.count() : 0
    if (all > 0) return `None of ${all} keys has ${JSON.stringify(name)} in its name.\n`
    const columns = 'id name plan access prefix state minuteLimit dayLimit expiresAt replacedById lastUsedAt'
    return render(keys.map(printable), options.json, columns.split(' '))
  },
  async show({ database, options }, idOrPrefix) {
    return render(printable(await find(database, idOrPrefix)), options.json)
  },
  async rotate({ database, options }, idOrPrefix) {
    const { expires, grace, json } = options
    const old = await find(database, idOrPrefix)
    if (isOver(old.revokedAt) || isOver(old.expiresAt))
      throw new StartupError(
        `Key ${old.prefix} is ${state(old)} and cannot be rotated. Create a new key: npm run keys -- create`,
      )
    // Not copied: if the date comes from an earlier rotation, the new key would expire with the old one.
    if (old.expiresAt && !expires)
      throw new StartupError(
        `Key ${old.prefix} expires at ${text(old.expiresAt)}. Set when the new key expires: --expires <date>`,
      )
    const { key, prefix, hash } = createSecret()
    const { name, plan, access, minuteLimit, dayLimit, bannedUntil } = old
    const kept = { name, plan, access, minuteLimit, dayLimit, bannedUntil, originId: old.originId ?? old.id }
    const end = inSeconds(grace)
    const expiresAt = old.expiresAt && old.expiresAt < end ? old.expiresAt : end
    const row = await writeKeys(database.prisma, 'command line', async ({ apiKey }) => {
      const row = await apiKey.create({ data: { ...kept, expiresAt: expires, prefix, hash } })
      await apiKey.update({ where: { id: old.id }, data: { expiresAt, replacedById: row.id } })
      return row
    })
    const advice = `The old key works until ${text(expiresAt)}. Copy the new key now. It cannot be shown again.`
    return renderNew(row, key, json, advice)
  },
  update: change((_key, { name, ...options }) => {
    const expiry = options.expires as Date | 'never' | undefined
    if (name === undefined && expiry === undefined)
      throw new StartupError('Say what changes: --name <name>, --expires <date>, or both.')
    return { name, expiresAt: expiry === 'never' ? null : expiry }
  }),
  async delete({ database, options }, idOrPrefix) {
    const key = await find(database, idOrPrefix)
    if (!isOver(key.revokedAt))
      throw new StartupError(`Key ${key.prefix} is not revoked. Revoke it first: npm run keys -- revoke ${key.id}`)
    await writeKeys(database.prisma, 'command line', ({ apiKey }) => apiKey.delete({ where: { id: key.id } }))
    const advice = `The key and its usage are deleted. What happened to it stays: npm run keys -- history ${key.prefix}\n`
    return render(printable(key), options.json) + (options.json ? '' : advice)
  },
  revoke: change(({ revokedAt }) => ({ revokedAt: revokedAt ?? new Date() })),
  plan: change((_key, options, value) => {
    const plan = value as ApiKey['plan']
    return { plan, ...limitsFor(plan, options) }
  }),
  access: change((_key, _options, access) => ({ access: access as Access })),
  ban: change((_key, { for: seconds }) => ({ bannedUntil: inSeconds(seconds) })),
  unban: change(() => ({ bannedUntil: null })),
} satisfies Record<string, Action>
