import { builder } from './builder.js'
import type { Quota as QuotaShape } from './context.js'
import { MAX_INT } from './input/rules.js'
import { plans } from './plans.js'
import type { Tag } from './plugin.js'

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
    : 'The limits of the key itself.'

const Plan = builder.enumType('Plan', {
  description: 'The limits of a key per minute and per day.',
  values: Object.fromEntries(
    Object.entries(plans).map(([name, limits]) => [name, { description: describePlan(limits) }]),
  ) as Record<keyof typeof plans, { description: string }>,
})

const count = { minimum: 0, maximum: MAX_INT }

const QuotaWindow = builder.objectRef<QuotaShape['minute']>('QuotaWindow').implement({
  description: 'One window of a quota.',
  fields: (t) => ({
    limit: t.exposeInt('limit', {
      description: 'Requests that the window allows.',
      example: minute.limit,
      bounds: { minimum: 1, maximum: MAX_INT },
    }),
    remaining: t.exposeInt('remaining', {
      description: 'Requests left in the window.',
      example: minute.remaining,
      bounds: count,
    }),
    reset: t.expose('reset', {
      type: 'Int64',
      description: 'When the window resets, as a Unix timestamp in seconds.',
      example: minute.resetAt / 1000,
    }),
  }),
})

const Access = builder.enumType('Access', {
  description: 'What a key may do.',
  values: {
    write: { description: 'Read and change data.' },
    read: { description: 'Only read.' },
  } as const,
})

/** What admins call a key, and its owner. */
const label = { pattern: '^[\\s\\S]*$', minLength: 1, maxLength: 100 }

const Key = builder.objectRef<QuotaShape['key']>('Key').implement({
  description: 'The calling key, without its secret.',
  fields: (t) => ({
    name: t.exposeString('name', {
      description: 'What it is called.',
      example: 'My shop',
      bounds: label,
    }),
    owner: t.exposeString('owner', {
      nullable: true,
      description: 'The person or company whose key it is.',
      example: 'Ann Lee',
      bounds: label,
    }),
    prefix: t.exposeString('prefix', {
      description: 'How it begins, to tell keys apart.',
      example: 'petstore_3f9a12c4',
      bounds: { pattern: '^petstore_[\\da-f]{8}$', minLength: 17, maxLength: 17 },
    }),
    access: t.expose('access', { type: Access, description: 'What it may do.' }),
    createdAt: t.expose('createdAt', {
      type: 'DateTime',
      description: 'When it was created.',
      example: '2026-11-21T12:00:00.000Z',
    }),
    expiresAt: t.expose('expiresAt', {
      type: 'DateTime',
      nullable: true,
      description: 'From when on it cannot be used.',
      example: '2027-11-21T12:00:00.000Z',
    }),
    bannedUntil: t.expose('bannedUntil', {
      type: 'DateTime',
      nullable: true,
      description: 'Until when it is banned.',
      example: '2026-11-21T12:05:00.000Z',
    }),
  }),
})

const Quota = builder.objectRef<QuotaShape>('Quota').implement({
  description: 'The plan of the calling key, the requests left in each window, and the key itself.',
  fields: (t) => ({
    plan: t.expose('plan', { type: Plan, description: "The key's plan." }),
    minute: t.expose('minute', { type: QuotaWindow, description: 'The window of a minute.' }),
    day: t.expose('day', {
      type: QuotaWindow,
      description: 'The window of a day.',
      example: { limit: day.limit, remaining: day.remaining, reset: day.resetAt / 1000 },
    }),
    key: t.expose('key', { type: Key, description: 'The calling key, without its secret.' }),
  }),
})

/** Adds what a key can ask about its plan. */
export const addQuota = (tag: Tag) =>
  builder.queryFields((t) => ({
    quota: t.field({
      type: Quota,
      description:
        'The plan of the calling key, and the requests left in each window. It is free, at most 600 times a minute, and also works for a limited or banned key.',
      rest: { method: 'GET', path: '/quota', tag, summary: 'Get your quota', cost: 0 },
      resolve: (_root, _args, { quota }) => quota(),
    }),
  }))
