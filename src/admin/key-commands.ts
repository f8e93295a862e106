import type { Access, ApiKey, Prisma } from '../../prisma/generated/client/client.js'
import { createSecret, keySubject, writeKeys } from '../auth/index.js'
import type { Database } from '../database/index.js'
import { type Settings, StartupError } from '../settings.js'
import { MAX_INT } from './arguments.js'
import { type Fields, render, text } from './table.js'

// The commands that create, show and change keys.

interface PlanLimits {
  minuteLimit?: number
  dayLimit?: number
}

/** Only an Enterprise key has limits of its own, and it needs both. Any other plan clears them. */
function limitsFor(plan: ApiKey['plan'], { minuteLimit, dayLimit }: PlanLimits) {
  if (plan === 'Enterprise') {
    if (minuteLimit && dayLimit) return { minuteLimit, dayLimit }
    throw new StartupError('An Enterprise key needs both --minute-limit and --day-limit.')
  }
  if (minuteLimit || dayLimit)
    throw new StartupError(`--minute-limit and --day-limit are for Enterprise only; the plan is ${plan}.`)
  return { minuteLimit: null, dayLimit: null }
}

export const bannedUntil = ({ bannedUntil: until }: ApiKey) => (until && until.getTime() > Date.now() ? until : null)

export function state(key: ApiKey) {
  if (key.revokedAt && key.revokedAt.getTime() <= Date.now()) return 'revoked'
  if (key.expiresAt && key.expiresAt.getTime() <= Date.now()) return 'expired'
  return bannedUntil(key) ? 'banned' : 'active'
}

/** The fields of a key that are printed: all but its hash. */
function printable(key: ApiKey): Fields {
  const { hash: _, ...fields } = key
  const [minute, day] = keySubject(key).windows
  return {
    ...fields,
    minuteLimit: minute?.limit,
    dayLimit: day?.limit,
    bannedUntil: bannedUntil(key),
    state: state(key),
  }
}

/** Finds a key by its id or its prefix. */
export async function find({ prisma }: Database, idOrPrefix: string): Promise<ApiKey> {
  const byId =
    /^\d{1,10}$/.test(idOrPrefix) && Number(idOrPrefix) <= MAX_INT
      ? await prisma.apiKey.findUnique({ where: { id: Number(idOrPrefix) } })
      : null
  const prefix = /^petstore_[0-9a-f]+$/.test(idOrPrefix) ? idOrPrefix.slice(0, 17) : `petstore_${idOrPrefix}`
  const key =
    byId ?? (/^petstore_[0-9a-f]{8}$/.test(prefix) ? await prisma.apiKey.findUnique({ where: { prefix } }) : null)
  if (!key)
    throw new StartupError(
      `There is no key with the id or prefix ${JSON.stringify(idOrPrefix)}. List all keys: npm run keys -- list`,
    )
  return key
}

export interface Call {
  database: Database
  settings: Pick<Settings, 'REDIS_URL'>
  options: Fields & { json?: boolean }
  /** Writes a line to standard error. */
  warn: (message: string) => void
}

/** A command; it returns what it prints. `args` are what stands after its name: mostly the id or the prefix of a key. */
export type Action = (call: Call, ...args: string[]) => Promise<string>

/** Changes a key and shows it. */
async function change({ database, options }: Call, id: number, data: Prisma.ApiKeyUpdateInput) {
  const write = ({ apiKey }: Prisma.TransactionClient) => apiKey.update({ where: { id }, data })
  return render(printable(await writeKeys(database.prisma, 'command line', write)), options.json)
}

/** A new key, and for people what to do with it. */
const renderNew = ({ id, name, plan, prefix }: ApiKey, key: string, json: boolean | undefined, advice: string) =>
  render({ id, name, plan, prefix, key }, json) + (json ? '' : `${advice}\n`)

export const keyCommands: Record<string, Action> = {
  async create({ database, options }) {
    const { name, plan, access, expires } = options as Pick<ApiKey, 'name' | 'plan' | 'access'> & { expires?: Date }
    const { key, prefix, hash } = createSecret()
    const data = { name, plan, access, prefix, hash, expiresAt: expires, ...limitsFor(plan, options as PlanLimits) }
    const row = await writeKeys(database.prisma, 'command line', ({ apiKey }) => apiKey.create({ data }))
    return renderNew(row, key, options.json, 'Copy the key now. It cannot be shown again: only its hash is stored.')
  },
  async list({ database, options }) {
    const keys = await database.prisma.apiKey.findMany({ orderBy: { id: 'asc' } })
    return render(keys.map(printable), options.json, [
      'id',
      'name',
      'plan',
      'access',
      'prefix',
      'state',
      'minuteLimit',
      'dayLimit',
      'expiresAt',
      'replacedById',
      'lastUsedAt',
    ])
  },
  async show({ database, options }, idOrPrefix = '') {
    return render(printable(await find(database, idOrPrefix)), options.json)
  },
  async revoke(call, idOrPrefix = '') {
    const { id, revokedAt } = await find(call.database, idOrPrefix)
    return change(call, id, { revokedAt: revokedAt ?? new Date() })
  },
  async rotate({ database, options }, idOrPrefix = '') {
    const old = await find(database, idOrPrefix)
    if (state(old) === 'revoked' || state(old) === 'expired')
      throw new StartupError(
        `Key ${old.prefix} is ${state(old)} and cannot be rotated. Create a new key: npm run keys -- create`,
      )
    const expires = options.expires as Date | undefined
    // Not copied: if the date comes from an earlier rotation, the new key would expire with the old one.
    if (old.expiresAt && !expires)
      throw new StartupError(
        `Key ${old.prefix} expires at ${text(old.expiresAt)}. Set when the new key expires: --expires <date>`,
      )
    const { key, prefix, hash } = createSecret()
    const { name, plan, access, minuteLimit, dayLimit, bannedUntil } = old
    const kept = { name, plan, access, minuteLimit, dayLimit, bannedUntil, originId: old.originId ?? old.id }
    const grace = new Date(Date.now() + (options.grace as number) * 1000)
    const end = old.expiresAt && old.expiresAt < grace ? old.expiresAt : grace
    const row = await writeKeys(database.prisma, 'command line', async ({ apiKey }) => {
      const row = await apiKey.create({ data: { ...kept, expiresAt: expires, prefix, hash } })
      await apiKey.update({ where: { id: old.id }, data: { expiresAt: end, replacedById: row.id } })
      return row
    })
    const advice = `The old key works until ${text(end)}. Copy the new key now. It cannot be shown again.`
    return renderNew(row, key, options.json, advice)
  },
  async plan(call, idOrPrefix = '', plan = '') {
    const { id } = await find(call.database, idOrPrefix)
    const chosen = plan as ApiKey['plan']
    return change(call, id, { plan: chosen, ...limitsFor(chosen, call.options as PlanLimits) })
  },
  async access(call, idOrPrefix = '', access = '') {
    const { id } = await find(call.database, idOrPrefix)
    return change(call, id, { access: access as Access })
  },
  async ban(call, idOrPrefix = '') {
    const { id } = await find(call.database, idOrPrefix)
    return change(call, id, { bannedUntil: new Date(Date.now() + (call.options.for as number) * 1000) })
  },
  async unban(call, idOrPrefix = '') {
    const { id } = await find(call.database, idOrPrefix)
    return change(call, id, { bannedUntil: null })
  },
}
