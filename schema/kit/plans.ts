/** Requests per minute and per day by plan (docs/specification.md, Limits). An Enterprise key has its own limits. */
export const plans = {
  Free: { minute: 60, day: 1_000 },
  Pro: { minute: 300, day: 10_000 },
  Business: { minute: 1_000, day: 100_000 },
  Enterprise: undefined,
} as const

export type Plan = keyof typeof plans
