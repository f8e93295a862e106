import type { ApiKey, ApiKeyEvent } from '../../prisma/generated/client/client.js'
import { keySubject } from '../auth/index.js'
import type { Database } from '../database/index.js'
import { createLog } from '../log.js'
import { openRateLimiter } from '../rate-limit/index.js'
import { type Action, bannedUntil, type Call, find, state } from './key-commands.js'
import { bar, line, render, renderColumns, sparkline, text, visible } from './table.js'

// The commands that show what keys have used, and what happened to them. Without --json they fit into 80 columns.

const DAY_MS = 86_400_000
/** The events that `history` shows: of a key, and of all keys. */
const MAX_EVENTS = 1_000
const MAX_EVENTS_OF_ALL = 100
const WIDTH = 30

/** How much of its quota each key has used. */
async function renderWindows(keys: ApiKey[], { settings, options: { json }, warn }: Call) {
  const { REDIS_URL: redisUrl } = settings
  const rateLimiter = redisUrl
    ? await openRateLimiter({ redisUrl, banAfter: 1, banSeconds: 1, log: createLog('silent') })
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
  if (!counted)
    warn(
      rateLimiter
        ? 'Redis is unreachable: the counters are unknown. Check REDIS_URL.'
        : 'Without REDIS_URL each gateway counts in its own memory: the counters are unknown here.',
    )
  await rateLimiter?.close()
  return render(rows, json)
}

interface Figures {
  requests: number
  refusals: number
  cost: number
}

interface KeyUsage extends Figures {
  key: ApiKey
  days: (Figures & { day: string })[]
}

const isoDay = (time: number) => new Date(time).toISOString().slice(0, 10)

const sum = (parts: Figures[]): Figures => ({
  requests: parts.reduce((total, { requests }) => total + requests, 0),
  refusals: parts.reduce((total, { refusals }) => total + refusals, 0),
  cost: parts.reduce((total, { cost }) => total + cost, 0),
})

/** What each of the keys has used since a day; keys without requests are left out, the busiest is first. */
async function readUsage({ prisma }: Database, keys: ApiKey[], since: number): Promise<KeyUsage[]> {
  const where = { day: { gte: new Date(since) }, ...(keys.length === 1 && { keyId: keys[0]?.id }) }
  const rows = await prisma.apiKeyUsage.findMany({ where, orderBy: { day: 'asc' } })
  const byKey = new Map<number, KeyUsage['days']>()
  for (const { keyId, day, requests, refusals, cost } of rows) {
    const days = byKey.get(keyId) ?? []
    byKey.set(keyId, days)
    const figures = { requests: Number(requests), refusals: Number(refusals), cost: Number(cost) }
    days.push({ day: isoDay(day.getTime()), ...figures })
  }
  return keys
    .flatMap((key) => {
      const days = byKey.get(key.id) ?? []
      return days.length > 0 ? [{ key, ...sum(days), days }] : []
    })
    .sort((a, b) => b.requests - a.requests)
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
  const head = ['id', 'name', 'requests', 'refused', 'cost', `1 bar = ${unit}`]
  return renderColumns(head, rows, ['left', 'left', 'right', 'right', 'right', 'left'])
}

/** A line for each day of one key, from its first request on. */
function renderDays({ days }: KeyUsage, today: number) {
  const byDay = new Map(days.map((day) => [day.day, day]))
  const most = Math.max(...days.map(({ requests }) => requests))
  const rows: string[][] = []
  for (let time = Date.parse(days[0]?.day ?? ''); time <= today; time += DAY_MS) {
    const day = isoDay(time)
    const { requests, refusals, cost } = byDay.get(day) ?? { requests: 0, refusals: 0, cost: 0 }
    const width = Math.ceil((requests / most) * WIDTH)
    const refused = Math.ceil((refusals / (requests || 1)) * width)
    const figures = [requests, refusals, cost].map((figure) => exact.format(figure))
    rows.push([day, ...figures, '█'.repeat(width - refused) + '░'.repeat(refused)])
  }
  return renderColumns(['day', 'requests', 'refused', 'cost', '█ answered ░ refused'], rows, [
    'left',
    'right',
    'right',
    'right',
    'left',
  ])
}

async function renderUsage({ database, options: { json } }: Call, keys: ApiKey[], days: number, of?: ApiKey) {
  const today = Math.floor(Date.now() / DAY_MS) * DAY_MS
  const since = today - (days - 1) * DAY_MS
  const usage = await readUsage(database, keys, since)
  if (json) {
    const rows = usage.map(({ key: { id, name, plan, prefix }, ...figures }) => ({
      id,
      name,
      plan,
      prefix,
      ...figures,
    }))
    return render(rows, json)
  }
  const range = days === 1 ? `on ${isoDay(today)}` : `from ${isoDay(since)} to ${isoDay(today)}`
  const requests = `Requests ${range} (UTC)`
  const [used] = usage
  if (of) return `${title(of)}\n${requests}\n\n${used ? renderDays(used, today) : 'None.\n'}`
  const unused = keys.length - usage.length
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

export const keyReports: Record<string, Action> = {
  async usage(call, idOrPrefix) {
    const { database, options } = call
    const key = idOrPrefix === undefined ? undefined : await find(database, idOrPrefix)
    const keys = key ? [key] : await database.prisma.apiKey.findMany({ orderBy: { id: 'asc' } })
    return options.days ? renderUsage(call, keys, options.days as number, key) : renderWindows(keys, call)
  },

  async history({ database, options: { json } }, idOrPrefix) {
    const { prisma } = database
    const key = idOrPrefix === undefined ? undefined : await find(database, idOrPrefix)
    const newest = await prisma.apiKeyEvent.findMany({
      where: key && { keyId: key.id },
      orderBy: { id: 'desc' },
      take: key ? MAX_EVENTS : MAX_EVENTS_OF_ALL,
    })
    const events = newest.reverse().map((event) => ({ ...event, id: Number(event.id) }))
    if (json) return render(events, json)
    const old = await prisma.apiKey.findMany({ where: { replacedById: { not: null } } })
    const rows = events.map((event) => {
      const replaces = old.filter(({ replacedById }) => replacedById === event.keyId).map(({ id }) => id)
      const what = describe(event, replaces)
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
}
