import { Command, InvalidArgumentError, Option } from 'commander'
import type { ApiKey } from '../../prisma/generated/client/client.js'
import { createSecret, keyClient } from '../auth/api-keys.js'
import { type Database, openDatabase } from '../database/index.js'
import { createLog } from '../log.js'
import { openRateLimiter } from '../rate-limit/index.js'
import { readConfig, StartupError } from '../settings.js'
import { bar, type Fields, print, text } from './table.js'

// `npm run keys`: what admins do with keys. Every verb prints a table for people, and JSON with --json.

const DAY_SECONDS = 86_400
const MAX_INT = 2_147_483_647

const count = (text: string) => {
  if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > MAX_INT)
    throw new InvalidArgumentError(`must be a whole number from 1 to ${MAX_INT}.`)
  return Number(text)
}

const date = (text: string) => {
  const value = new Date(text)
  if (!/^\d{4}-\d{2}-\d{2}/.test(text) || Number.isNaN(value.getTime()) || value.getTime() <= Date.now())
    throw new InvalidArgumentError('must be a date to come, such as 2027-01-31 or 2027-01-31T12:00:00Z.')
  return value
}

const label = (text: string) => {
  const value = text.trim()
  if (value === '' || [...value].length > 100 || /\p{C}/u.test(value))
    throw new InvalidArgumentError('must have 1 to 100 characters, none a control character.')
  return value
}

interface PlanLimits {
  minuteLimit?: number
  dayLimit?: number
}

/** Limits of its own belong to Enterprise, which needs both; any other plan loses those it had. */
function limitsFor(plan: ApiKey['plan'], { minuteLimit, dayLimit }: PlanLimits) {
  if (plan === 'Enterprise') {
    if (minuteLimit && dayLimit) return { minuteLimit, dayLimit }
    throw new StartupError('An Enterprise key needs both --minute-limit and --day-limit.')
  }
  if (minuteLimit || dayLimit)
    throw new StartupError(`--minute-limit and --day-limit belong to Enterprise, not ${plan}.`)
  return { minuteLimit: null, dayLimit: null }
}

const bannedUntil = ({ bannedUntil: until }: ApiKey) => (until && until.getTime() > Date.now() ? until : null)

function state(key: ApiKey) {
  if (key.revokedAt && key.revokedAt.getTime() <= Date.now()) return 'revoked'
  if (key.expiresAt && key.expiresAt.getTime() <= Date.now()) return 'expired'
  return bannedUntil(key) ? 'banned' : 'active'
}

/** A key as it is shown: everything but its hash. */
function shown(key: ApiKey): Fields {
  const { hash: _, ...fields } = key
  const [minute, day] = keyClient(key).windows
  return {
    ...fields,
    minuteLimit: minute?.limit,
    dayLimit: day?.limit,
    bannedUntil: bannedUntil(key),
    state: state(key),
  }
}

/** Finds a key by its id or its prefix. */
async function find({ prisma }: Database, which: string): Promise<ApiKey> {
  const byId = /^\d{1,9}$/.test(which) ? await prisma.apiKey.findUnique({ where: { id: Number(which) } }) : null
  const prefix = /^petstore_[0-9a-f]+$/.test(which) ? which.slice(0, 17) : `petstore_${which}`
  const key =
    byId ?? (/^petstore_[0-9a-f]{8}$/.test(prefix) ? await prisma.apiKey.findUnique({ where: { prefix } }) : null)
  if (!key)
    throw new StartupError(`There is no key with the id or prefix ${JSON.stringify(which)}. See: npm run keys -- list`)
  return key
}

type Action = (database: Database, options: Fields & { json?: boolean }, which: string, plan: string) => Promise<void>

const update = async ({ prisma }: Database, id: number, data: Partial<ApiKey>) =>
  shown(await prisma.apiKey.update({ where: { id }, data }))

const created = ({ id, name, plan, prefix }: ApiKey, key: string) => ({ id, name, plan, prefix, key })

const verbs: Record<string, Action> = {
  async create(database, options) {
    const { name, plan, expires } = options as { name: string; plan: ApiKey['plan']; expires?: Date }
    const { key, prefix, hash } = createSecret()
    const data = { name, plan, prefix, hash, expiresAt: expires, ...limitsFor(plan, options as PlanLimits) }
    print(created(await database.prisma.apiKey.create({ data }), key), options.json)
    if (!options.json) process.stdout.write('The key is shown this once: only its hash is stored.\n')
  },
  async list({ prisma }, { json }) {
    const keys = await prisma.apiKey.findMany({ orderBy: { id: 'asc' } })
    print(keys.map(shown), json, [
      'id',
      'name',
      'plan',
      'prefix',
      'state',
      'minuteLimit',
      'dayLimit',
      'expiresAt',
      'lastUsedAt',
    ])
  },
  async show(database, { json }, which) {
    print(shown(await find(database, which)), json)
  },
  async revoke(database, { json }, which) {
    const { id, revokedAt } = await find(database, which)
    print(await update(database, id, { revokedAt: revokedAt ?? new Date() }), json)
  },
  async rotate(database, options, which) {
    const old = await find(database, which)
    if (state(old) === 'revoked' || state(old) === 'expired')
      throw new StartupError(`Key ${old.prefix} is ${state(old)} and cannot be rotated. Make a new one with: create`)
    const expires = options.expires as Date | undefined
    // An end may be a contract's or an earlier rotation's: guessing would hand out a key that dies tomorrow, or never.
    if (old.expiresAt && !expires)
      throw new StartupError(
        `Key ${old.prefix} expires at ${text(old.expiresAt)}. Say when the new one does: --expires`,
      )
    const { key, prefix, hash } = createSecret()
    const { name, plan, minuteLimit, dayLimit, bannedUntil } = old
    const grace = new Date(Date.now() + (options.grace as number) * 1000)
    const end = old.expiresAt && old.expiresAt < grace ? old.expiresAt : grace
    const [row] = await database.prisma.$transaction([
      database.prisma.apiKey.create({
        data: { name, plan, minuteLimit, dayLimit, expiresAt: expires, bannedUntil, prefix, hash },
      }),
      database.prisma.apiKey.update({ where: { id: old.id }, data: { expiresAt: end } }),
    ])
    print(created(row, key), options.json)
    if (!options.json) process.stdout.write(`The old key works until ${text(end)}. The new one is shown this once.\n`)
  },
  async plan(database, options, which, plan) {
    const { id } = await find(database, which)
    const chosen = plan as ApiKey['plan']
    print(await update(database, id, { plan: chosen, ...limitsFor(chosen, options as PlanLimits) }), options.json)
  },
  async ban(database, options, which) {
    const { id } = await find(database, which)
    const until = new Date(Date.now() + (options.for as number) * 1000)
    print(await update(database, id, { bannedUntil: until }), options.json)
  },
  async unban(database, { json }, which) {
    const { id } = await find(database, which)
    print(await update(database, id, { bannedUntil: null }), json)
  },
  async usage({ prisma }, { json }) {
    const config = readConfig()
    const keys = await prisma.apiKey.findMany({ orderBy: { id: 'asc' } })
    const limits = config.REDIS_URL
      ? await openRateLimiter({ redisUrl: config.REDIS_URL, banAfter: 1, banSeconds: 1, log: createLog('silent') })
      : undefined
    const counted = limits?.state === 'redis' ? limits : undefined
    const rows = await Promise.all(
      keys.map(async (key) => {
        const result = await counted?.consume(keyClient(key), 0)
        const windows = result?.windows.map(({ name, limit, remaining }) =>
          json ? [name, { limit, used: limit - remaining }] : [name, bar(limit - remaining, limit)],
        )
        const { id, name, plan, prefix, lastUsedAt } = key
        const counters = Object.fromEntries(
          windows ?? [
            ['minute', null],
            ['day', null],
          ],
        )
        return { id, name, plan, prefix, state: state(key), ...counters, bannedUntil: bannedUntil(key), lastUsedAt }
      }),
    )
    print(rows, json)
    if (!counted)
      process.stderr.write(
        limits
          ? 'Redis cannot be reached, so the counters are not known here.\n'
          : 'Without REDIS_URL each gateway counts in its own memory, so the counters are not known here.\n',
      )
    await limits?.close()
  },
}

const planChoices = ['Free', 'Pro', 'Business', 'Enterprise']

function run(verb: string) {
  return async (...args: unknown[]) => {
    const command = args.at(-1) as Command
    const [which = '', plan = ''] = command.processedArgs as string[]
    const database = await openDatabase(readConfig(), { join: true })
    try {
      await verbs[verb]?.(database, command.opts(), which, plan)
    } finally {
      await database.close()
    }
  }
}

const program = new Command('keys')
  .description('Hands out API keys and looks after them. KEY is the id or the prefix of a key.')
  .configureHelp({ showGlobalOptions: true })
const verb = (usage: string, description: string) =>
  program
    .command(usage)
    .description(description)
    .option('--json', 'print JSON, for programs')
    .action(run(usage.split(' ')[0] as string))
const withLimits = (command: Command) =>
  command
    .option('--minute-limit <n>', 'requests per minute (Enterprise)', count)
    .option('--day-limit <n>', 'requests per day (Enterprise)', count)

withLimits(
  verb('create', 'make a key and show it, once')
    .requiredOption('--name <name>', 'whose key it is', label)
    .addOption(new Option('--plan <plan>', 'its plan').choices(planChoices).makeOptionMandatory()),
).option('--expires <date>', 'the last moment of its life', date)
verb('list', 'all keys')
verb('show <key>', 'everything about a key, but its secret')
verb('revoke <key>', 'end a key for good')
verb('rotate <key>', 'make a new secret with the same plan and limits')
  .option('--grace <seconds>', 'how long the old one still works', count, DAY_SECONDS)
  .option('--expires <date>', 'the last moment of the new one', date)
withLimits(verb('plan <key>', 'change the plan').addArgument(program.createArgument('<plan>').choices(planChoices)))
verb('ban <key>', 'ban a key').option('--for <seconds>', 'for how long', count, DAY_SECONDS)
verb('unban <key>', 'lift a ban')
verb('usage', 'what is used of every quota')

program.parseAsync().catch((error) => {
  process.stderr.write(`${error instanceof StartupError ? error.message : (error?.stack ?? error)}\n`)
  process.exitCode = 1
})
