import type { Access, ApiKey, Prisma } from '../../prisma/generated/client/client.js'
import { createSecret, keySubject, writeKeys } from '../auth/index.js'
import type { Database } from '../database/index.js'
import { StartupError } from '../settings.js'
import { MAX_INT } from './arguments.js'
import { type Fields, print, text } from './table.js'

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

/** A command. `args` are what stands after its name: mostly the id or the prefix of a key. */
export type Action = (database: Database, options: Fields & { json?: boolean }, ...args: string[]) => Promise<void>

/** Changes a key and prints it. */
async function change(database: Database, json: boolean | undefined, id: number, data: Prisma.ApiKeyUpdateInput) {
  const write = ({ apiKey }: Prisma.TransactionClient) => apiKey.update({ where: { id }, data })
  print(printable(await writeKeys(database.prisma, 'command line', write)), json)
}

const created = ({ id, name, plan, prefix }: ApiKey, key: string) => ({ id, name, plan, prefix, key })

export const keyCommands: Record<string, Action> = {
  async create({ prisma }, options) {
    const { name, plan, access, expires } = options as Pick<ApiKey, 'name' | 'plan' | 'access'> & { expires?: Date }
    const { key, prefix, hash } = createSecret()
    const data = { name, plan, access, prefix, hash, expiresAt: expires, ...limitsFor(plan, options as PlanLimits) }
    const row = await writeKeys(prisma, 'command line', ({ apiKey }) => apiKey.create({ data }))
    print(created(row, key), options.json)
    if (!options.json) process.stdout.write('Copy the key now. It cannot be shown again: only its hash is stored.\n')
  },
  async list({ prisma }, { json }) {
    const keys = await prisma.apiKey.findMany({ orderBy: { id: 'asc' } })
    print(keys.map(printable), json, [
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
  async show(database, { json }, idOrPrefix = '') {
    print(printable(await find(database, idOrPrefix)), json)
  },
  async revoke(database, { json }, idOrPrefix = '') {
    const { id, revokedAt } = await find(database, idOrPrefix)
    await change(database, json, id, { revokedAt: revokedAt ?? new Date() })
  },
  async rotate(database, options, idOrPrefix = '') {
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
    print(created(row, key), options.json)
    if (!options.json)
      process.stdout.write(`The old key works until ${text(end)}. Copy the new key now. It cannot be shown again.\n`)
  },
  async plan(database, options, idOrPrefix = '', plan = '') {
    const { id } = await find(database, idOrPrefix)
    const chosen = plan as ApiKey['plan']
    await change(database, options.json, id, { plan: chosen, ...limitsFor(chosen, options as PlanLimits) })
  },
  async access(database, { json }, idOrPrefix = '', access = '') {
    const { id } = await find(database, idOrPrefix)
    await change(database, json, id, { access: access as Access })
  },
  async ban(database, options, idOrPrefix = '') {
    const { id } = await find(database, idOrPrefix)
    await change(database, options.json, id, { bannedUntil: new Date(Date.now() + (options.for as number) * 1000) })
  },
  async unban(database, { json }, idOrPrefix = '') {
    const { id } = await find(database, idOrPrefix)
    await change(database, json, id, { bannedUntil: null })
  },
}
