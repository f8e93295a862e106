import type { ApiKey } from '../../prisma/generated/client/client.js'
import { catalogue, isErrorCode } from '../../schema/kit/errors.js'
import { getOrCreate } from '../../schema/kit/get-or-create.js'
import { createLog } from '../engines/observe/index.js'
import { openRateLimiter } from '../engines/rate-limit/index.js'
import { type Database, installationId } from '../gateway/database/index.js'
import {
  addOutcomes,
  keySubject,
  noOutcomes,
  type Outcomes,
  readUsed,
  UNIT_MS,
  type Unit,
  type UsedByKey,
} from '../gateway/keys/index.js'
import { bannedUntil, findToShow, state } from './key.js'
import type { Action, Call } from './key-commands.js'
import { bar, line, render, renderColumns, sparkline, TERMINAL, titleOf } from './table.js'

// What keys have used: their windows now, and each day or hour. Without --json it fits into 80 columns.

/** The columns of figures, which are aligned to the right. */
const FIGURES = ['requests', 'limited', 'errors', 'cost']
/** The most bars of a line of the overview, and the longest bar of a day or an hour. */
const BARS = 24
const WIDTH = 20

interface Figures {
  requests: number
  refusals: number
  cost: number
  outcomes: Outcomes
}

interface KeyUsage extends Figures {
  key: ApiKey
  /** Each day or hour with requests. */
  parts: UsedByKey[]
}

const startOf = (unit: Unit) => Math.floor(Date.now() / UNIT_MS[unit]) * UNIT_MS[unit]

/** `2026-11-29`, `2026-11-29 12:00`. */
const nameOf = (unit: Unit, time: number) =>
  new Date(time)
    .toISOString()
    .slice(0, unit === 'day' ? 10 : 16)
    .replace('T', ' ')

const sum = (parts: Figures[]): Figures => {
  const total: Figures = { requests: 0, refusals: 0, cost: 0, outcomes: noOutcomes() }
  for (const { requests, refusals, cost, outcomes } of parts) {
    total.requests += requests
    total.refusals += refusals
    total.cost += cost
    addOutcomes(total.outcomes, outcomes)
  }
  return total
}

const statusOf = (code: string) => (isErrorCode(code) ? catalogue[code].status : undefined)

/** The figures that are shown: what was over the quota is apart from all other errors. */
function figuresOf({ requests, refusals, cost, outcomes }: Figures): [number, number, number, number] {
  const limited = Object.entries(outcomes).reduce((sum, [code, n]) => sum + (statusOf(code) === 429 ? n : 0), 0)
  return [requests, limited, refusals - limited, cost]
}

/** What each key, or one of them, has used since a day or an hour: the busiest first, those without requests last. */
async function readUsage({ prisma, query }: Database, unit: Unit, since: number, of?: ApiKey): Promise<KeyUsage[]> {
  const keys = of ? [of] : await prisma.apiKey.findMany({ orderBy: { id: 'asc' } })
  const parts = new Map<number, UsedByKey[]>()
  for (const part of await readUsed(query, unit, since, of?.id)) getOrCreate(parts, part.keyId, () => []).push(part)
  const used = keys.map((key) => {
    const own = parts.get(key.id) ?? []
    return { key, ...sum(own), parts: own }
  })
  return used.sort((a, b) => b.requests - a.requests)
}

/** How much of its quota each key has used. */
async function renderWindows({ database, settings, options: { json }, warn }: Call, of?: ApiKey) {
  const { REDIS_URL: redisUrl } = settings
  const used = await readUsage(database, 'day', startOf('day'), of)
  const limiter = redisUrl
    ? await openRateLimiter({
        redisUrl,
        keyPrefix: `petstore:${await installationId(settings, database.query)}`,
        banAfter: 1,
        banSeconds: 1,
        log: createLog('silent'),
      })
    : undefined
  const counted = limiter?.state === 'redis' ? limiter : undefined
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
      `${why}. Shown: what gateways have written about today (UTC), the busiest key first. Other days: npm run keys -- usage --days 30. Hours and errors of a key: npm run keys -- usage <key> --hours 24`,
    )
  await limiter?.close()
  return render(rows, json)
}

const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 })
const exact = new Intl.NumberFormat('en')
/** The room for the figures of an hour, beside its name and the longest bar. */
const ROOM = TERMINAL - '2026-11-29 12:00  '.length - WIDTH

/** What exact figures take of a line. */
const widthOf = (parts: Figures[]) => {
  const figures = parts.map((part) => figuresOf(part).map((figure) => exact.format(figure)))
  const columns = FIGURES.map((title, i) => Math.max(title.length, ...figures.map((row) => row[i]?.length ?? 0)))
  return columns.reduce((total, width) => total + width + 2, 0)
}

/** A line for each key, with a bar for each day or hour, or for several if there are many. */
function renderOverview(usage: KeyUsage[], unit: Unit, count: number, last: number) {
  const perBar = Math.ceil(count / BARS)
  const bars = Math.ceil(count / perBar)
  const rows = usage.map(({ key, parts, ...total }) => {
    const heights = Array<number>(bars).fill(0)
    for (const { begins, requests } of parts) {
      // The clock of a gateway may be ahead of this one.
      const bar = bars - 1 - Math.floor(Math.max(0, last - begins) / UNIT_MS[unit] / perBar)
      heights[bar] = (heights[bar] ?? 0) + requests
    }
    const figures = figuresOf(total).map((figure) => compact.format(figure))
    return [String(key.id), line(key.name, 12), ...figures, sparkline(heights)]
  })
  const one = unit === 'day' ? 'a day' : 'an hour'
  return renderColumns(
    ['id', 'name', ...FIGURES, `1 bar = ${perBar === 1 ? one : `${perBar} ${unit}s`}`],
    rows,
    FIGURES,
  )
}

/** A line for each day or hour of one key, from its first request on. */
function renderParts({ parts }: KeyUsage, unit: Unit, last: number) {
  const byTime = new Map(parts.map((part) => [part.begins, part]))
  const max = Math.max(...parts.map(({ requests }) => requests))
  const { format } = widthOf(parts) <= ROOM ? exact : compact
  const rows: string[][] = []
  for (let time = parts[0]?.begins ?? last; time <= last; time += UNIT_MS[unit]) {
    const figures = figuresOf(byTime.get(time) ?? sum([]))
    const [requests, limited, errors] = figures
    const width = Math.ceil((requests / max) * WIDTH)
    const barOf = (part: number) => Math.ceil((part / (requests || 1)) * width)
    const ofErrors = Math.min(barOf(errors), width - barOf(limited))
    const answered = width - barOf(limited) - ofErrors
    rows.push([
      nameOf(unit, time),
      ...figures.map((figure) => format(figure)),
      '█'.repeat(answered) + '▒'.repeat(barOf(limited)) + '░'.repeat(ofErrors),
    ])
  }
  return renderColumns([unit, ...FIGURES, '█ ok ▒ limited ░ error'], rows, FIGURES)
}

/** How many requests of a key ended with which error, the most frequent first. */
function renderOutcomes({ outcomes }: KeyUsage) {
  const rows = Object.entries(outcomes)
    .sort(([, a], [, b]) => b - a)
    .map(([code, requests]) => [
      exact.format(requests),
      String(statusOf(code) ?? ''),
      line(code, 30),
      isErrorCode(code)
        ? catalogue[code].description.replaceAll('`', '')
        : 'Counted by another version, or changed by hand.',
    ])
  return rows.length === 0 ? '' : `\n${renderColumns(['requests', 'status', 'code', 'when'], rows, FIGURES)}`
}

async function renderUsage({ database, options: { json } }: Call, unit: Unit, count: number, of?: ApiKey) {
  const last = startOf(unit)
  const since = last - (count - 1) * UNIT_MS[unit]
  const all = await readUsage(database, unit, since, of)
  const usage = all.filter(({ parts }) => parts.length > 0)
  if (json) {
    const rows = usage.map(({ key: { id, name, plan, prefix }, parts, ...figures }) => ({
      ...{ id, name, plan, prefix, ...figures },
      [`${unit}s`]: parts.map(({ keyId: _, begins, ...figures }) => ({
        [unit]: unit === 'day' ? nameOf(unit, begins) : new Date(begins).toISOString(),
        ...figures,
      })),
    }))
    return render(rows, json)
  }
  const range =
    count === 1 && unit === 'day'
      ? `on ${nameOf(unit, last)}`
      : `from ${nameOf(unit, since)} to ${unit === 'day' ? nameOf(unit, last) : 'now'}`
  const requests = `Requests ${range} (UTC)`
  const [used] = usage
  if (of)
    return `${titleOf(of)}\n${requests}\n\n${used ? renderParts(used, unit, last) + renderOutcomes(used) : 'None.\n'}`
  const unused = all.length - usage.length
  const rest = `\n${unused} more ${unused === 1 ? 'key has' : 'keys have'} sent none.\n`
  return `${requests}; each row has its own scale\n\n${used ? renderOverview(usage, unit, count, last) : 'None.\n'}${unused > 0 ? rest : ''}`
}

/** What keys have used: in each day or hour, or in their windows now. */
export const usage: Action = async (call, idOrPrefix) => {
  const { days, hours } = call.options
  const key = idOrPrefix === undefined ? undefined : await findToShow(call.database, idOrPrefix)
  if (hours) return renderUsage(call, 'hour', hours, key)
  return days ? renderUsage(call, 'day', days, key) : renderWindows(call, key)
}
