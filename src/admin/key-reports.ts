import type { ApiKey, ApiKeyEvent } from '../../prisma/generated/client/client.js'
import { createLog } from '../engines/observe/index.js'
import { DAY_MS, openRateLimiter } from '../engines/rate-limit/index.js'
import { type Database, installationId } from '../gateway/database/index.js'
import { type Figures, keySubject } from '../gateway/keys/index.js'
import { type Action, bannedUntil, type Call, find, prefixIn, state } from './key-commands.js'
import { bar, line, render, renderColumns, sparkline, text, visible } from './table.js'

// The commands that show what keys have used, and what happened to them. Without --json they fit into 80 columns.

/** The events that `history` shows: of a key, and of all keys. */
const MAX_EVENTS = 1_000
const MAX_EVENTS_OF_ALL = 100
const WIDTH = 30
/** The columns of figures, which are aligned to the right. */
const FIGURES = ['requests', 'refused', 'cost']

/** How much of its quota each key has used. */
async function renderWindows({ database, settings, options: { json }, warn }: Call, of?: ApiKey) {
  const { REDIS_URL: redisUrl } = settings
  const limiter = redisUrl
    ? await openRateLimiter({
        redisUrl,
        keyPrefix: `petstore:${await installationId(settings, database.prisma)}`,
        banAfter: 1,
        banSeconds: 1,
        log: createLog('silent'),
      })
    : undefined
  const counted = limiter?.state === 'redis' ? limiter : undefined
  const used = await readUsage(database, Math.floor(Date.now() / DAY_MS) * DAY_MS, of)
  if (counted) used.sort((a, b) => a.key.id - b.key.id)
  const rows = await Promise.all(
    used.map(async ({ key, requests, refusals, cost }) => {
      const result = await counted?.consume(keySubject(key), 0)
      const counters: Record<string, unknown> = { minute: null, day: null }
      for (const { name, limit, remaining } of result?.windows ?? [])
        counters[name] = json ? { limit, used: limit - remaining } : bar(limit - remaining, limit)
      if (!counted) Object.assign(counters, { requestsToday: requests, refusedToday: refusals, costToday: cost })
      const { id, name, plan, prefix, lastUsedAt } = key
      return { id, name, plan, prefix, state: state(key), ...counters, bannedUntil: bannedUntil(key), lastUsedAt }
    }),
  )
  const why = limiter
    ? 'Redis is unreachable, so the counters are unknown (check REDIS_URL)'
    : 'Without REDIS_URL each gateway counts in its own memory, so the counters are unknown here'
  if (!counted)
    warn(
      `${why}. Shown: what gateways have written about today (UTC), the busiest key first. Other days: npm run keys -- usage --days 30`,
    )
  await limiter?.close()
  return render(rows, json)
}

interface KeyUsage extends Figures {
  key: ApiKey
  days: (Figures & { day: string })[]
}

const isoDay = (time: Date | number) => new Date(time).toISOString().slice(0, 10)

/** What each key, or one of them, has used since a day: the busiest first, those without requests last. */
async function readUsage({ prisma }: Database, since: number, of?: ApiKey): Promise<KeyUsage[]> {
  const usage = { where: { day: { gte: new Date(since) } }, orderBy: { day: 'asc' } } as const
  const where = of && { id: of.id }
  const keys = await prisma.apiKey.findMany({ where, include: { usage }, orderBy: { id: 'asc' } })
  const used = keys.map(({ usage, ...key }) => {
    const days = usage.map(({ day, requests, refusals, cost }) => {
      return { day: isoDay(day), requests: Number(requests), refusals: Number(refusals), cost: Number(cost) }
    })
    const sum = (figure: keyof Figures) => days.reduce((total, day) => total + day[figure], 0)
    return { key, requests: sum('requests'), refusals: sum('refusals'), cost: sum('cost'), days }
  })
  return used.sort((a, b) => b.requests - a.requests)
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const exact = new Intl.NumberFormat('en')

/** A line for each key, with a bar for each day, or for several days if there are many. */
function renderOverview(usage: KeyUsage[], days: number, today: number) {
  const daysPerBar = Math.ceil(days / WIDTH)
  const bars = Math.ceil(days / daysPerBar)
  const rows = usage.map(({ key, requests, refusals, cost, days }) => {
    const heights = Array<number>(bars).fill(0)
    for (const { day, requests } of days) {
      const bar = bars - 1 - Math.floor((today - Date.parse(day)) / DAY_MS / daysPerBar)
      heights[bar] = (heights[bar] ?? 0) + requests
    }
    const figures = [requests, refusals, cost].map((figure) => compact.format(figure))
    return [String(key.id), line(key.name, 14), ...figures, sparkline(heights)]
  })
  const unit = daysPerBar === 1 ? 'a day' : `${daysPerBar} days`
  return renderColumns(['id', 'name', ...FIGURES, `1 bar = ${unit}`], rows, FIGURES)
}

/** A line for each day of one key, from its first request on. */
function renderDays({ days }: KeyUsage, today: number) {
  const byDay = new Map(days.map((day) => [day.day, day]))
  const max = Math.max(...days.map(({ requests }) => requests))
  const rows: string[][] = []
  for (let time = Date.parse(days[0]?.day ?? ''); time <= today; time += DAY_MS) {
    const day = isoDay(time)
    const { requests, refusals, cost } = byDay.get(day) ?? { requests: 0, refusals: 0, cost: 0 }
    const width = Math.ceil((requests / max) * WIDTH)
    const refused = Math.ceil((refusals / (requests || 1)) * width)
    const figures = [requests, refusals, cost].map((figure) => exact.format(figure))
    rows.push([day, ...figures, '█'.repeat(width - refused) + '░'.repeat(refused)])
  }
  return renderColumns(['day', ...FIGURES, '█ answered ░ refused'], rows, FIGURES)
}

async function renderUsage({ database, options: { json } }: Call, days: number, of?: ApiKey) {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const since = today - (days - 1) * DAY_MS
  const all = await readUsage(database, since, of)
  const usage = all.filter(({ days }) => days.length > 0)
  if (json)
    return render(
      usage.map(({ key: { id, name, plan, prefix }, ...figures }) => ({ id, name, plan, prefix, ...figures })),
      json,
    )
  const range = days === 1 ? `on ${isoDay(today)}` : `from ${isoDay(since)} to ${isoDay(today)}`
  const requests = `Requests ${range} (UTC)`
  const [used] = usage
  if (of) return `${title(of)}\n${requests}\n\n${used ? renderDays(used, today) : 'None.\n'}`
  const unused = all.length - usage.length
  const rest = `\n${unused} more ${unused === 1 ? 'key has' : 'keys have'} sent none.\n`
  return `${requests}; each row has its own scale\n\n${used ? renderOverview(usage, days, today) : 'None.\n'}${unused > 0 ? rest : ''}`
}

const title = ({ id, name, prefix }: ApiKey) => `Key ${id}, ${line(name, 40)} (${prefix})`

/** What the prefix, or the moment of the event, says already. */
const IMPLIED = new Set(['id', 'hash', 'prefix', 'createdAt', 'originId'])

const shown = (value: unknown) =>
  typeof value === 'string' && /^\d{4}-\d\d-\d\dT/.test(value) && !Number.isNaN(Date.parse(value))
    ? text(new Date(value)).replace(/\.\d+Z$/, 'Z')
    : text(value)

/** What an event changed, a line for each column. */
function describe({ event, changes }: Pick<ApiKeyEvent, 'event' | 'changes'>, replaces: number[]): string {
  const all = Object.entries(changes as Record<string, [before: unknown, after: unknown]>)
  const isWhole = event === 'created' || event === 'deleted'
  const columns = all.filter(([column]) => !isWhole || !IMPLIED.has(column))
  const lines = columns.map(([column, [before, after]]) => {
    if (column === 'replacedById' && after !== null) return `replaced by key ${after}`
    if (isWhole || before === null) return `${column} ${shown(after ?? before)}`
    return `${column} ${shown(before)} → ${shown(after)}`
  })
  if (event === 'created') lines.push(...replaces.map((id) => `replaces key ${id}`))
  return lines.join('\n')
}

/** The last event of a deleted key, which is found by its id or prefix; undefined for any other key. */
const findDeleted = ({ prisma: { apiKeyEvent } }: Database, idOrPrefix: string) => {
  const prefix = prefixIn(idOrPrefix)
  const named = prefix ? { prefix } : { changes: { path: ['id', '0'], equals: Number(idOrPrefix) } }
  return apiKeyEvent.findFirst({ where: { event: 'deleted', ...named } })
}

export const keyReports = {
  async usage(call, idOrPrefix) {
    const { days } = call.options
    const key = idOrPrefix === undefined ? undefined : await find(call.database, idOrPrefix)
    return days ? renderUsage(call, days, key) : renderWindows(call, key)
  },

  async history({ database, options: { json } }, idOrPrefix) {
    const { apiKeyEvent } = database.prisma
    const deleted = idOrPrefix === undefined ? undefined : await findDeleted(database, idOrPrefix)
    const key = idOrPrefix === undefined || deleted ? undefined : await find(database, idOrPrefix)
    const newest = await apiKeyEvent.findMany({
      where: key ? { keyId: key.id } : { prefix: deleted?.prefix },
      include: { key: { select: { replaces: { select: { id: true } } } } },
      orderBy: { id: 'desc' },
      take: idOrPrefix === undefined ? MAX_EVENTS_OF_ALL : MAX_EVENTS,
    })
    const events = newest.reverse()
    if (json)
      return render(
        events.map(({ key: _, id, ...event }) => ({ id: Number(id), ...event })),
        json,
      )
    const rows = events.map((event) => {
      const what = describe(event, event.key?.replaces.map(({ id }) => id) ?? [])
      const columns = [shown(event.at.toISOString()), event.event, visible(event.source)]
      // Of a deleted key, the part of its prefix that tells it from others.
      return key
        ? [...columns, what]
        : [String(event.keyId ?? event.prefix.slice(9)), ...columns, `${visible(event.name)}\n${what}`]
    })
    const head = key ? `${title(key)}\n${key.plan}, ${key.access}, ${state(key)}\n\n` : ''
    if (rows.length === 0)
      return `${head}Nothing has happened since the history began, which is when this version was installed.\n`
    return head + renderColumns([...(key ? [] : ['key']), 'time', 'event', 'by', 'what'], rows)
  },
} satisfies Record<string, Action>
