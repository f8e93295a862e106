import { builder, type Quota as QuotaShape, type QuotaWindow as QuotaWindowShape } from './builder.js'
import { plans } from './plans.js'

/** The moment that every example shows: one request after the windows of a Free key began. Epoch milliseconds. */
export const EXAMPLE_TIME = Date.UTC(2026, 10, 21, 12)

const example = ({ limit, seconds }: { limit: number; seconds: number }): QuotaWindowShape => ({
  limit,
  remaining: limit - 1,
  reset: EXAMPLE_TIME / 1000 + seconds,
})
const minute = example({ limit: plans.Free.minute, seconds: 60 })
const day = example({ limit: plans.Free.day, seconds: 86_400 })

const planValues = Object.entries(plans).map(([name, limits]) => [
  name,
  {
    description: limits
      ? `${limits.minute.toLocaleString('en')} requests per minute, ${limits.day.toLocaleString('en')} per day.`
      : 'Limits of its own.',
  },
])

const Plan = builder.enumType('Plan', {
  description: 'What a key may do in a minute and in a day.',
  values: Object.fromEntries(planValues) as Record<keyof typeof plans, { description: string }>,
})

const QuotaWindow = builder.objectRef<QuotaWindowShape>('QuotaWindow').implement({
  description: 'One window of a quota.',
  fields: (t) => ({
    limit: t.exposeInt('limit', { description: 'Requests that the window allows.', example: minute.limit }),
    remaining: t.exposeInt('remaining', { description: 'Requests that are left in it.', example: minute.remaining }),
    reset: t.expose('reset', {
      type: 'Int64',
      description: 'When it begins anew: Unix time in whole seconds.',
      example: minute.reset,
    }),
  }),
})

const Quota = builder.objectRef<QuotaShape>('Quota').implement({
  description: 'What is left to the calling key.',
  fields: (t) => ({
    plan: t.expose('plan', { type: Plan, description: "The key's plan." }),
    minute: t.expose('minute', { type: QuotaWindow, description: 'The window of a minute.', example: minute }),
    day: t.expose('day', { type: QuotaWindow, description: 'The window of a day.', example: day }),
  }),
})

builder.queryFields((t) => ({
  quota: t.field({
    type: Quota,
    nullable: true,
    description:
      "The calling key's plan and what is left of it. It costs nothing, and answers a limited or banned key too.",
    rest: { method: 'GET', path: '/quota', tag: 'Store', summary: 'Get your quota', cost: 0 },
    resolve: (_root, _args, { quota }) => quota(),
  }),
}))
