import type { TargetRow } from './targets.js'

interface Reason {
  /** Targets that may be missed for it: what is measured, and compared with what. */
  of: RegExp
  against: RegExp
  why: string
}

/** Profiled or measured. BENCHMARKS.md prints those of the targets that are missed. */
const reasons: Reason[] = [
  {
    of: /^(GET one|GET 20|GraphQL one),/,
    against: /Prisma, keys and limits$/,
    why: 'Much of such a request is work that no server on Node can leave out. A server of node:http, ioredis and pg that counts twice in Redis and reads the row, and does nothing else, takes about half of the processor time that the gateway needs for GET one with one connection, 0.6 with four, and about as much with 32, where the gateway sends the statements and commands of several requests together. The rest is spread out: in a profile, no function of the gateway has more than about 1 %. With one connection, the ratios of two rounds of the same servers differ by up to a third.',
  },
  {
    of: /^nested/,
    against: /^PostGraphile/,
    why: 'PostGraphile sends one statement for the whole question, in which PostgreSQL builds the JSON. The gateway sends one for each level, one after the other, and reads no row twice. A lone question pays for each of them; questions in company share them.',
  },
  {
    of: /^nested/,
    against: /^Mercurius/,
    why: 'A question takes three to six statements, one after the other. Alone, each of them wakes the gateway again. In company, several requests share one (2.4 for a question of nested shop at 32); what is left is rows to read and JSON to write.',
  },
  {
    of: /^POST order with Idempotency-Key/,
    against: /^POST order/,
    why: 'Orders without a key share statements and connections. One with a key is a transaction on a connection of its own: two round trips and four statements (docs/decisions/0029).',
  },
  {
    of: /^a pet in a batch of 100, .* PostgreSQL$/,
    against: /^POST of one pet/,
    why: 'The rows themselves: an INSERT of a hundred pets by hand costs PostgreSQL 47 µs a pet, ten indexes, triggers and the row of the stock included. The gateway adds 5 to 12 µs to it.',
  },
  {
    of: /^GET 20 with category and stock/,
    against: /^(GET 20|the three requests that it replaces)$/,
    why: 'Its body is 2.5 times as long, and it takes two more statements, which can be sent only when the page is there. In the profile all parts grow alike: reading rows, writing JSON, sending it.',
  },
  {
    of: /^time, GET 20, 1,000,000 pets/,
    against: /^100,000 pets/,
    why: 'PostgreSQL reads as many rows by the same plan, but four pages instead of three: the index has another level.',
  },
  {
    of: /^GET one, .* keys/,
    against: /^ten keys/,
    why: 'A request with one of many keys reads no more rows and sends Redis no more commands, and alone the script in Redis takes the same time for ten subjects and for 100,000. But the row, the counters and the usage of a key at random are not in the caches of the processor, which all processes share here. PostgreSQL writes the usage of each key every 45 seconds if it was used: with more keys, fewer requests share a write.',
  },
]

const UNKNOWN = 'Not explained yet: profile them.'

/** Missed targets, grouped by the reason. */
export function whyMissed(rows: TargetRow[]) {
  const groups = new Map<string, TargetRow[]>()
  for (const row of rows) {
    if (row.met) continue
    const reason = reasons.find(({ of, against }) => of.test(row.what) && against.test(row.against))
    const why = reason?.why ?? UNKNOWN
    groups.set(why, [...(groups.get(why) ?? []), row])
  }
  return [...groups].map(([why, rows]) => ({ why, rows }))
}
