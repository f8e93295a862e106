import { isDeepStrictEqual } from 'node:util'
import type { Access, ApiKey, Prisma } from '../../prisma/generated/client/client.js'
import type { Database } from '../gateway/database/index.js'
import { createSecret, isOver, keySubject, writeKeys } from '../gateway/keys/index.js'
import type { Settings } from '../settings.js'
import { StartupError } from '../startup-error.js'
import { bannedUntil, find, findToShow, isEnded, sameName, state } from './key.js'
import { type Fields, render, text } from './table.js'

// The commands that create, show and change keys.

/** The options of all commands. Each command has those that command-line.ts gives it. */
export interface Options extends Pick<ApiKey, 'name' | 'plan' | 'access'> {
  json?: boolean
  /** `update` takes an empty text, which removes what was there. */
  owner?: string
  email?: string
  note?: string
  expires?: Date | 'never'
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

/** What a command prints. `ifLost` is what to do if that cannot be written, because it is shown only once. */
export type Printed = string | { text: string; ifLost: string }

/** A command with its arguments, as far as it has them. */
export type Action = (call: Call, key: string, value: string) => Promise<Printed>

/** Only an Enterprise key has limits of its own, and it needs both. Any other plan clears them. */
export function limitsFor(plan: ApiKey['plan'], { minuteLimit, dayLimit }: Options) {
  if (plan === 'Enterprise') {
    if (minuteLimit && dayLimit) return { minuteLimit, dayLimit }
    throw new StartupError('An Enterprise key needs both --minute-limit and --day-limit.')
  }
  if (minuteLimit || dayLimit)
    throw new StartupError(`--minute-limit and --day-limit are for Enterprise only; the plan is ${plan}.`)
  return { minuteLimit: null, dayLimit: null }
}

const dateOf = (expires: Options['expires']) => (expires === 'never' ? null : expires)

const inSeconds = (seconds: number) => new Date(Date.now() + seconds * 1000)

/** The fields of a key that are printed: all but its hash. */
function printable(key: ApiKey): Fields {
  const { hash: _, ...fields } = key
  const [minute, day] = keySubject(key).windows
  const limits = { minuteLimit: minute?.limit, dayLimit: day?.limit }
  return { ...fields, ...limits, bannedUntil: bannedUntil(key), state: state(key) }
}

/** A new key, and for people what to do with it. */
const renderNew = ({ id, name, plan, prefix }: ApiKey, key: string, json: boolean | undefined, advice: string) => ({
  text: render({ id, name, plan, prefix, key }, json) + (json ? '' : `${advice}\n`),
  ifLost: `Key ${id} (${prefix}) exists, and its secret is lost. For another secret: npm run keys -- rotate ${id}`,
})

/** Says which keys have a name already. It asks before that is written: a new secret is printed whatever happens. */
async function warnOfSameName({ database, options, warn }: Call, name: string) {
  const line = options.json ? undefined : await sameName(database, name)
  if (line) warn(line)
}

/** A command that changes a key and shows it. */
const change =
  (decide: (key: ApiKey, options: Options, value: string) => Prisma.ApiKeyUpdateInput): Action =>
  async (call, idOrPrefix, value) => {
    const { database, options } = call
    const key = await find(database, idOrPrefix)
    const data = decide(key, options, value)
    if (typeof data.name === 'string' && data.name !== key.name) await warnOfSameName(call, data.name)
    const isSame = ([column, value]: [string, unknown]) =>
      value === undefined || isDeepStrictEqual(value, key[column as keyof ApiKey])
    if (!options.json && Object.entries(data).every(isSame))
      call.warn('Nothing changes: the key has these values already.')
    const write = ({ apiKey }: Prisma.TransactionClient) => apiKey.update({ where: { id: key.id }, data })
    return render(printable(await writeKeys(database.prisma, 'command line', write)), options.json)
  }

const changedMeanwhile = ({ id, prefix }: ApiKey, done: string) =>
  new StartupError(
    `Key ${prefix} was changed at the same moment, and is not ${done}. What happened: npm run keys -- history ${id}`,
  )

const orNull = (text: string | undefined) => (text === '' ? null : text)

/** A filter for a part of a text, in any case. An underscore and a percent sign are no wildcards. */
const having = (text: string) => ({ contains: text.replace(/[\\%_]/g, '\\$&'), mode: 'insensitive' }) as const

export const keyCommands = {
  async create(call) {
    const { database, options } = call
    const { name, owner, email, note, plan, access, expires, json } = options
    const { key, prefix, hash } = createSecret()
    const limits = limitsFor(plan, options)
    const data = { name, owner, email, note, plan, access, prefix, hash, expiresAt: dateOf(expires), ...limits }
    await warnOfSameName(call, name)
    const row = await writeKeys(database.prisma, 'command line', ({ apiKey }) => apiKey.create({ data }))
    return renderNew(row, key, json, 'Copy the key now. It cannot be shown again: only its hash is stored.')
  },
  async list({ database, options: { name, owner, email, json } }) {
    const { apiKey } = database.prisma
    const filters = Object.entries({ name, owner, email }).filter(([, text]) => text)
    const where = Object.fromEntries(filters.map(([column, text = '']) => [column, having(text)]))
    const keys = await apiKey.findMany({ where, orderBy: { id: 'asc' } })
    const all = keys.length === 0 && filters.length > 0 && !json ? await apiKey.count() : 0
    const asked = filters.map(([column, text]) => `${JSON.stringify(text)} in its ${column}`)
    if (all > 0) return `None of ${all} keys has ${asked.join(' and ')}.\n`
    const columns = 'id name owner plan access prefix state minuteLimit dayLimit expiresAt replacedById lastUsedAt'
    return render(keys.map(printable), json, columns.split(' '))
  },
  async show({ database, options }, key) {
    return render(printable(await findToShow(database, key)), options.json)
  },
  async rotate({ database, options }, idOrPrefix) {
    const { expires, grace, json } = options
    const old = await find(database, idOrPrefix)
    const { replacedById } = old
    const successor = replacedById && (await database.prisma.apiKey.findUnique({ where: { id: replacedById } }))
    if (successor && !isEnded(successor))
      throw new StartupError(
        `Key ${old.prefix} was replaced by key ${successor.id} (${successor.prefix}) already, which is ${state(successor)}. To replace that one: npm run keys -- rotate ${successor.id}`,
      )
    if (isEnded(old)) {
      const last = isOver(old.revokedAt)
        ? ''
        : `, or let it live longer: npm run keys -- update ${old.id} --expires <date>`
      throw new StartupError(
        `Key ${old.prefix} is ${state(old)} and cannot be rotated. Create a new key: npm run keys -- create${last}`,
      )
    }
    // Not copied: if the date comes from an earlier rotation, the new key would expire with the old one.
    if (old.expiresAt && !expires)
      throw new StartupError(
        `Key ${old.prefix} expires at ${text(old.expiresAt)}. Set when the new key expires: --expires <date>`,
      )
    const { key, prefix, hash } = createSecret()
    const { name, owner, email, note, plan, access, minuteLimit, dayLimit, bannedUntil } = old
    const contact = { name, owner, email, note }
    const kept = { ...contact, plan, access, minuteLimit, dayLimit, bannedUntil, originId: old.originId ?? old.id }
    const end = inSeconds(grace)
    const expiresAt = old.expiresAt && old.expiresAt < end ? old.expiresAt : end
    const row = await writeKeys(database.prisma, 'command line', async ({ apiKey }) => {
      const row = await apiKey.create({ data: { ...kept, expiresAt: dateOf(expires), prefix, hash } })
      const rights = { plan, access, minuteLimit, dayLimit, bannedUntil, revokedAt: old.revokedAt }
      const unchanged = { id: old.id, replacedById, ...rights }
      const { count } = await apiKey.updateMany({ where: unchanged, data: { expiresAt, replacedById: row.id } })
      if (count === 0) throw changedMeanwhile(old, 'rotated')
      return row
    })
    const advice = `Copy the new key now. It cannot be shown again.
The old key works until ${text(expiresAt)}. When it was last used: npm run keys -- show ${old.id}`
    return renderNew(row, key, json, advice)
  },
  update: change((_key, { name, owner, email, note, ...options }) => {
    const contact = { owner: orNull(owner), email: orNull(email), note: orNull(note) }
    const changes = { name, ...contact, expiresAt: dateOf(options.expires) }
    if (Object.values(changes).every((value) => value === undefined))
      throw new StartupError('Say what changes: --name, --owner, --email, --note or --expires.')
    return changes
  }),
  async delete({ database, options }, idOrPrefix) {
    const key = await find(database, idOrPrefix)
    if (!isOver(key.revokedAt))
      throw new StartupError(`Key ${key.prefix} is not revoked. Revoke it first: npm run keys -- revoke ${key.id}`)
    const unchanged = { id: key.id, revokedAt: key.revokedAt }
    const write = ({ apiKey }: Prisma.TransactionClient) => apiKey.deleteMany({ where: unchanged })
    const { count } = await writeKeys(database.prisma, 'command line', write)
    if (count === 0) throw changedMeanwhile(key, 'deleted')
    const advice = `The key and its usage are deleted. What happened to it stays: npm run keys -- history ${key.prefix}\n`
    return render(printable(key), options.json) + (options.json ? '' : advice)
  },
  // A date in the future is no revocation yet.
  revoke: change(({ revokedAt }) => ({ revokedAt: isOver(revokedAt) ? revokedAt : new Date() })),
  plan: change((_key, options, value) => {
    const plan = value as ApiKey['plan']
    return { plan, ...limitsFor(plan, options) }
  }),
  access: change((_key, _options, access) => ({ access: access as Access })),
  ban: change((_key, { for: seconds }) => ({ bannedUntil: inSeconds(seconds) })),
  unban: change(() => ({ bannedUntil: null })),
} satisfies Record<string, Action>
