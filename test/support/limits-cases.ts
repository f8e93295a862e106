import type { RateLimitResult, Subject } from '../../src/engines/rate-limit/index.js'

/** Milliseconds since the first decision, the cost, and the expected result; `ban`: seconds of the ban that it starts. */
type Step = [at: number, cost: number, outcome: RateLimitResult['outcome'], remaining: number[], ban?: number]

export interface LimitsCase {
  guarantee: string
  ban: { after: number; seconds: number; carrySeconds?: number }
  windows: Subject['windows']
  bannable?: false
  steps: Step[]
}

const minute = (limit: number, seconds = 60) => ({ name: 'minute' as const, limit, seconds })
const day = (limit: number) => ({ name: 'day' as const, limit, seconds: 86_400 })
const one = [minute(1), day(1000)]

/** The rules of quotas, strikes and bans. Memory, Redis and the model are tested with these cases. */
export const limitsCases: LimitsCase[] = [
  {
    guarantee: 'a request consumes its cost in both windows or in neither',
    ban: { after: 10, seconds: 300 },
    windows: [minute(10), day(8)],
    steps: [
      [0, 6, 'allowed', [4, 2]],
      [0, 3, 'limited', [4, 2]],
      [0, 5, 'limited', [4, 2]],
      [0, 0, 'allowed', [4, 2]],
      [0, 2, 'allowed', [2, 0]],
      [0, 1, 'limited', [2, 0]],
    ],
  },
  {
    guarantee: 'refusals within a second of the first one are not strikes',
    ban: { after: 1, seconds: 300 },
    windows: one,
    steps: [
      [0, 1, 'allowed', [0, 999]],
      ...Array.from({ length: 20 }, (_, i): Step => [i * 30, 1, 'limited', [0, 999]]),
    ],
  },
  {
    guarantee: 'exactly the last strike starts the ban, and is itself limited',
    ban: { after: 3, seconds: 300 },
    windows: one,
    steps: [
      [0, 1, 'allowed', [0, 999]],
      [0, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999], 300],
      [1300, 1, 'banned', [0, 999]],
      [1300, 0, 'banned', [0, 999]],
    ],
  },
  {
    guarantee: 'requests during a ban consume nothing and do not prolong it; the ban clears the strikes',
    ban: { after: 2, seconds: 1 },
    windows: one,
    steps: [
      [0, 1, 'allowed', [0, 999]],
      [0, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999], 1],
      [1500, 1, 'banned', [0, 999]],
      [1900, 1, 'banned', [0, 999]],
      [2700, 0, 'allowed', [0, 999]],
      [2700, 1, 'limited', [0, 999]],
      [2700, 1, 'limited', [0, 999], 2],
      [2700, 1, 'banned', [0, 999]],
    ],
  },
  {
    guarantee: 'each further ban doubles, up to a day; the store carries it only until gateways have read the row',
    ban: { after: 1, seconds: 30_000, carrySeconds: 1 },
    windows: one,
    steps: [
      [0, 1, 'allowed', [0, 999]],
      [0, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999], 30_000],
      [1300, 1, 'banned', [0, 999]],
      [2700, 1, 'limited', [0, 999], 60_000],
      [2700, 1, 'banned', [0, 999]],
      [4100, 1, 'limited', [0, 999], 86_400],
      [5500, 1, 'limited', [0, 999], 86_400],
    ],
  },
  {
    guarantee: 'a new window forgets its first refusal',
    ban: { after: 1, seconds: 300 },
    windows: [minute(1, 1), day(1000)],
    steps: [
      [0, 1, 'allowed', [0, 999]],
      [0, 1, 'limited', [0, 999]],
      [1300, 1, 'allowed', [0, 998]],
      [1300, 1, 'limited', [0, 998]],
      [1300, 1, 'limited', [0, 998]],
    ],
  },
  {
    guarantee: 'strikes outlive their window',
    ban: { after: 2, seconds: 300 },
    windows: [minute(1, 2)],
    steps: [
      [0, 1, 'allowed', [0]],
      [0, 1, 'limited', [0]],
      [1300, 1, 'limited', [0]],
      [2400, 1, 'allowed', [0]],
      [2400, 1, 'limited', [0]],
      [3800, 1, 'limited', [0], 300],
    ],
  },
  {
    guarantee: 'refusals of the day window alone are strikes too',
    ban: { after: 1, seconds: 300 },
    windows: [minute(10), day(2)],
    steps: [
      [0, 2, 'allowed', [8, 0]],
      [0, 1, 'limited', [8, 0]],
      [1300, 1, 'limited', [8, 0], 300],
    ],
  },
  {
    guarantee: 'a cost above a whole window is limited, changes nothing, and is not a strike',
    ban: { after: 1, seconds: 300 },
    windows: [minute(5), day(100)],
    steps: [
      [0, 6, 'limited', [5, 100]],
      [1300, 6, 'limited', [5, 100]],
      [1300, 5, 'allowed', [0, 95]],
    ],
  },
  {
    guarantee: 'a subject that is not bannable is never banned',
    ban: { after: 1, seconds: 300 },
    windows: one,
    bannable: false,
    steps: [
      [0, 1, 'allowed', [0, 999]],
      [0, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999]],
    ],
  },
  {
    guarantee: 'banAfter 0 disables bans',
    ban: { after: 0, seconds: 300 },
    windows: one,
    steps: [
      [0, 1, 'allowed', [0, 999]],
      [0, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999]],
      [1300, 1, 'limited', [0, 999]],
    ],
  },
]
