import { builder, type Quota as QuotaShape, type QuotaWindow as QuotaWindowShape } from './builder.js'

const Plan = builder.enumType('Plan', {
  description: 'What a key may do in a minute and in a day.',
  values: {
    Free: { description: '60 requests per minute, 1,000 per day.' },
    Pro: { description: '300 requests per minute, 10,000 per day.' },
    Business: { description: '1,000 requests per minute, 100,000 per day.' },
    Enterprise: { description: 'Limits of its own.' },
  } as const,
})

const QuotaWindow = builder.objectRef<QuotaWindowShape>('QuotaWindow').implement({
  description: 'One window of a quota.',
  fields: (t) => ({
    limit: t.exposeInt('limit', { description: 'Requests that the window allows.' }),
    remaining: t.exposeInt('remaining', { description: 'Requests that are left in it.' }),
    reset: t.expose('reset', { type: 'Int64', description: 'When it begins anew: Unix time in whole seconds.' }),
  }),
})

const Quota = builder.objectRef<QuotaShape>('Quota').implement({
  description: 'What is left to the calling key.',
  fields: (t) => ({
    plan: t.expose('plan', { type: Plan, description: "The key's plan." }),
    minute: t.expose('minute', { type: QuotaWindow, description: 'The window of a minute.' }),
    day: t.expose('day', { type: QuotaWindow, description: 'The window of a day.' }),
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
