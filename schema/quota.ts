import { builder, type Quota as QuotaShape } from './builder.js'
import { plans } from './plans.js'

/** The moment that every example shows: one request after the windows of a Free key began. Epoch milliseconds. */
export const EXAMPLE_TIME = Date.UTC(2026, 10, 21, 12)

const exampleWindow = <Name extends 'minute' | 'day'>(name: Name, seconds: number) => {
  const limit = plans.Free[name]
  return { name, limit, seconds, remaining: limit - 1, resetAt: EXAMPLE_TIME + seconds * 1000 }
}
const minute = exampleWindow('minute', 60)
const day = exampleWindow('day', 86_400)
export const exampleWindows = [minute, day]

const describePlan = (limits: { minute: number; day: number } | undefined) =>
  limits
    ? `${limits.minute.toLocaleString('en')} requests per minute, ${limits.day.toLocaleString('en')} per day.`
    : 'Limits of its own.'

const Plan = builder.enumType('Plan', {
  description: 'What a key may do in a minute and in a day.',
  values: Object.fromEntries(
    Object.entries(plans).map(([name, limits]) => [name, { description: describePlan(limits) }]),
  ) as Record<keyof typeof plans, { description: string }>,
})

const QuotaWindow = builder.objectRef<QuotaShape['minute']>('QuotaWindow').implement({
  description: 'One window of a quota.',
  fields: (t) => ({
    limit: t.exposeInt('limit', { description: 'Requests that the window allows.', example: minute.limit }),
    remaining: t.exposeInt('remaining', { description: 'Requests that are left in it.', example: minute.remaining }),
    reset: t.expose('reset', {
      type: 'Int64',
      description: 'When it begins anew: Unix time in whole seconds.',
      example: minute.resetAt / 1000,
    }),
  }),
})

const Quota = builder.objectRef<QuotaShape>('Quota').implement({
  description: 'What is left to the calling key.',
  fields: (t) => ({
    plan: t.expose('plan', { type: Plan, description: "The key's plan." }),
    minute: t.expose('minute', { type: QuotaWindow, description: 'The window of a minute.' }),
    day: t.expose('day', {
      type: QuotaWindow,
      description: 'The window of a day.',
      example: { limit: day.limit, remaining: day.remaining, reset: day.resetAt / 1000 },
    }),
  }),
})

builder.queryFields((t) => ({
  quota: t.field({
    type: Quota,
    description:
      "The calling key's plan and what is left of it. It costs nothing, 600 times a minute, and answers a limited or banned key too.",
    rest: { method: 'GET', path: '/quota', tag: 'Store', summary: 'Get your quota', cost: 0 },
    resolve: (_root, _args, { quota }) => quota(),
  }),
}))
