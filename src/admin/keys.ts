import { Command, InvalidArgumentError, Option } from 'commander'
import type { ApiKey } from '../../prisma/generated/client/client.js'
import { plans } from '../../schema/plans.js'
import { createSecret, keySubject } from '../auth/index.js'
import { type Database, openDatabase, PATIENT_MS } from '../database/index.js'
import { createLog } from '../log.js'
import { openRateLimiter } from '../rate-limit/index.js'
import { readSettings, StartupError } from '../settings.js'
import { bar, type Fields, print, text } from './table.js'

// `npm run keys`: manages API keys. Every command prints a table, or JSON with --json.

const DAY_SECONDS = 86_400
const MAX_INT = 2_147_483_647
const MAX_DATE = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

const count = (text: string) => {
  if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > MAX_INT)
    throw new InvalidArgumentError(`must be a whole number from 1 to ${MAX_INT}.`)
  return Number(text)
}

const date = (text: string) => {
  const value = new Date(text)
  if (
    !/^\d{4}-\d{2}-\d{2}/.test(text) ||
    Number.isNaN(value.getTime()) ||
    value.getTime() <= Date.now() ||
    value.getTime() > MAX_DATE
  )
    throw new InvalidArgumentError(
      'must be a date in the future, such as 2027-01-31 or 2027-01-31T12:00:00Z, and not after the year 9999.',
    )
  return value
}

const label = (text: string) => {
  const value = text.trim()
  if (value === '' || [...value].length > 100 || /\p{C}/u.test(value))
    throw new InvalidArgumentError('must have 1 to 100 characters and no control character.')
  return value
}

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

const bannedUntil = ({ bannedUntil: until }: ApiKey) => (until && until.getTime() > Date.now() ? until : null)

function state(key: ApiKey) {
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
async function find({ prisma }: Database, idOrPrefix: string): Promise<ApiKey> {
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

type Action = (
  database: Database,
  options: Fields & { json?: boolean },
  idOrPrefix: string,
  plan: string,
) => Promise<void>

const update = async ({ prisma }: Database, id: number, data: Partial<ApiKey>) =>
  printable(await prisma.apiKey.update({ where: { id }, data }))

const created = ({ id, name, plan, prefix }: ApiKey, key: string) => ({ id, name, plan, prefix, key })

const commands: Record<string, Action> = {
  async create(database, options) {
    const { name, plan, expires } = options as { name: string; plan: ApiKey['plan']; expires?: Date }
    const { key, prefix, hash } = createSecret()
    const data = { name, plan, prefix, hash, expiresAt: expires, ...limitsFor(plan, options as PlanLimits) }
    print(created(await database.prisma.apiKey.create({ data }), key), options.json)
    if (!options.json) process.stdout.write('Copy the key now. It cannot be shown again: only its hash is stored.\n')
  },
  async list({ prisma }, { json }) {
    const keys = await prisma.apiKey.findMany({ orderBy: { id: 'asc' } })
    print(keys.map(printable), json, [
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
  async show(database, { json }, idOrPrefix) {
    print(printable(await find(database, idOrPrefix)), json)
  },
  async revoke(database, { json }, idOrPrefix) {
    const { id, revokedAt } = await find(database, idOrPrefix)
    print(await update(database, id, { revokedAt: revokedAt ?? new Date() }), json)
  },
  async rotate(database, options, idOrPrefix) {
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
    const { name, plan, minuteLimit, dayLimit, bannedUntil } = old
    const grace = new Date(Date.now() + (options.grace as number) * 1000)
    const end = old.expiresAt && old.expiresAt < grace ? old.expiresAt : grace
    const [row] = await database.prisma.$transaction([
      database.prisma.apiKey.create({
        data: {
          name,
          plan,
          minuteLimit,
          dayLimit,
          expiresAt: expires,
          bannedUntil,
          prefix,
          hash,
          originId: old.originId ?? old.id,
        },
      }),
      database.prisma.apiKey.update({ where: { id: old.id }, data: { expiresAt: end } }),
    ])
    print(created(row, key), options.json)
    if (!options.json)
      process.stdout.write(`The old key works until ${text(end)}. Copy the new key now. It cannot be shown again.\n`)
  },
  async plan(database, options, idOrPrefix, plan) {
    const { id } = await find(database, idOrPrefix)
    const chosen = plan as ApiKey['plan']
    print(await update(database, id, { plan: chosen, ...limitsFor(chosen, options as PlanLimits) }), options.json)
  },
  async ban(database, options, idOrPrefix) {
    const { id } = await find(database, idOrPrefix)
    const until = new Date(Date.now() + (options.for as number) * 1000)
    print(await update(database, id, { bannedUntil: until }), options.json)
  },
  async unban(database, { json }, idOrPrefix) {
    const { id } = await find(database, idOrPrefix)
    print(await update(database, id, { bannedUntil: null }), json)
  },
  async usage({ prisma }, { json }) {
    const config = readSettings()
    const keys = await prisma.apiKey.findMany({ orderBy: { id: 'asc' } })
    const rateLimiter = config.REDIS_URL
      ? await openRateLimiter({ redisUrl: config.REDIS_URL, banAfter: 1, banSeconds: 1, log: createLog('silent') })
      : undefined
    const counted = rateLimiter?.state === 'redis' ? rateLimiter : undefined
    const rows = await Promise.all(
      keys.map(async (key) => {
        const result = await counted?.consume(keySubject(key), 0)
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
        rateLimiter
          ? 'Redis is unreachable: the counters are unknown. Check REDIS_URL.\n'
          : 'Without REDIS_URL each gateway counts in its own memory: the counters are unknown here.\n',
      )
    await rateLimiter?.close()
  },
}

const planChoices = Object.keys(plans)

function run(name: string) {
  return async (...args: unknown[]) => {
    const command = args.at(-1) as Command
    const [idOrPrefix = '', plan = ''] = command.processedArgs as string[]
    const database = await openDatabase(readSettings(), {
      join: true,
      // Only the first key may begin a database.
      mustExist: name !== 'create',
      timeoutMs: PATIENT_MS,
      onNotice: (message) => void process.stderr.write(`${message}\n`),
    })
    try {
      if (!command.opts().json) process.stderr.write(`Database: ${database.name}\n`)
      await commands[name]?.(database, command.opts(), idOrPrefix, plan)
    } finally {
      await database.close()
    }
  }
}

const program = new Command('keys')
  .description('Manages API keys. <key> is the id or the prefix of a key.')
  .configureHelp({ showGlobalOptions: true })
const command = (usage: string, description: string) =>
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
  command('create', 'create a key and print it once')
    .requiredOption('--name <name>', 'the owner of the key', label)
    .addOption(new Option('--plan <plan>', 'the plan').choices(planChoices).makeOptionMandatory()),
).option('--expires <date>', 'when the key expires (default: never)', date)
command('list', 'list all keys')
command('show <key>', 'show a key, without its secret')
command('revoke <key>', 'revoke a key permanently')
command('rotate <key>', 'create a new key with the same plan and limits, and let the old one expire')
  .option('--grace <seconds>', 'how long the old key still works', count, DAY_SECONDS)
  .option('--expires <date>', 'when the new key expires (required if the old key has an expiry date)', date)
withLimits(command('plan <key>', 'change the plan').addArgument(program.createArgument('<plan>').choices(planChoices)))
command('ban <key>', 'ban a key').option('--for <seconds>', 'how long', count, DAY_SECONDS)
command('unban <key>', 'lift a ban')
command('usage', 'show how much of its quota each key has used')

program.parseAsync().catch((error) => {
  process.stderr.write(`${error instanceof StartupError ? error.message : (error?.stack ?? error)}\n`)
  process.exitCode = 1
})
