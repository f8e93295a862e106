import type { ApiKeyEvent } from '../../prisma/generated/client/client.js'
import type { Database } from '../gateway/database/index.js'
import { findToShow, idIn, prefixIn, state } from './key.js'
import type { Action } from './key-commands.js'
import { render, renderColumns, text, titleOf, visible } from './table.js'

/** The events that `history` shows: of a key, and of all keys. Without --json they fit into 80 columns. */
const MAX_EVENTS = 1_000
const MAX_EVENTS_OF_ALL = 100

/** What the prefix, or the moment of the event, says already. */
const IMPLIED = new Set(['id', 'hash', 'prefix', 'createdAt', 'originId'])

/** Columns of which the history keeps only whether they had a value. */
const PRIVATE = new Set(['owner', 'email', 'note'])

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
    if (PRIVATE.has(column)) return `${column} ${before === null ? 'set' : after === null ? 'removed' : 'changed'}`
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
  const named = prefix ? { prefix } : { changes: { path: ['id', '0'], equals: idIn(idOrPrefix) } }
  return apiKeyEvent.findFirst({ where: { event: 'deleted', ...named } })
}

/** What happened to a key, or to all of them. */
export const history: Action = async ({ database, options: { json } }, idOrPrefix) => {
  const { apiKeyEvent } = database.prisma
  const deleted = idOrPrefix === undefined ? undefined : await findDeleted(database, idOrPrefix)
  const key = idOrPrefix === undefined || deleted ? undefined : await findToShow(database, idOrPrefix)
  const max = idOrPrefix === undefined ? MAX_EVENTS_OF_ALL : MAX_EVENTS
  const newest = await apiKeyEvent.findMany({
    where: key ? { keyId: key.id } : { prefix: deleted?.prefix },
    include: { key: { select: { replaces: { select: { id: true } } } } },
    orderBy: { id: 'desc' },
    take: max,
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
  const head = key ? `${titleOf(key)}\n${key.plan}, ${key.access}, ${state(key)}\n\n` : ''
  if (rows.length === 0)
    return `${head}Nothing has happened since the history began, which is when this version was installed.\n`
  const more = idOrPrefix === undefined ? ' Of one key: npm run keys -- history <key>' : ''
  const foot = rows.length === max ? `\nThese are the latest ${max} events.${more}\n` : ''
  return head + renderColumns([...(key ? [] : ['key']), 'time', 'event', 'by', 'what'], rows) + foot
}
