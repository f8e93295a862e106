import { builder } from './builder.js'
import type { Used } from './context.js'
import { catalogue } from './errors.js'
import {
  DEFAULT_USAGE_DAYS,
  DEFAULT_USAGE_HOURS,
  MAX_INT,
  MAX_USAGE_DAYS,
  MAX_USAGE_HOURS,
  usageDays,
  usageHours,
} from './input/rules.js'
import type { Tag } from './plugin.js'

const count = { minimum: 0, maximum: MAX_INT }

/** Each code of the catalogue, and what an older version counted. */
const MAX_OUTCOMES = Object.keys(catalogue).length + 1
const USUAL_OUTCOMES = 2

const Outcome = builder.objectRef<Used['outcomes'][number]>('Outcome').implement({
  description: 'How many requests ended with an error code.',
  fields: (t) => ({
    code: t.exposeString('code', {
      description: 'The code of the error; unknown for requests that an older version of the service counted.',
      example: 'rate_limited',
      bounds: { pattern: '^[a-z_]+$', minLength: 1, maxLength: 64 },
    }),
    requests: t.exposeInt('requests', { description: 'Answered requests.', example: 2, bounds: count }),
  }),
})

const usedFields = (t: PothosSchemaTypes.ObjectFieldBuilder<typeof builder.$inferSchemaTypes, Used>) => ({
  requests: t.exposeInt('requests', { description: 'Answered requests.', example: 120, bounds: count }),
  refused: t.exposeInt('refused', {
    description: 'Those of them that ended with an error: the sum of the outcomes.',
    example: 2,
    bounds: count,
  }),
  cost: t.exposeInt('cost', { description: 'What they took from the quota.', example: 131, bounds: count }),
  outcomes: t.expose('outcomes', {
    type: [Outcome],
    description: 'How many ended with which error, by code.',
    list: { items: { max: MAX_OUTCOMES, usual: USUAL_OUTCOMES } },
    bounds: { maxItems: MAX_OUTCOMES },
    example: [{ code: 'rate_limited', requests: 2 }],
  }),
})

const UsageOfDay = builder.objectRef<Used>('UsageOfDay').implement({
  description: 'What a key has used on a day.',
  fields: (t) => ({
    date: t.exposeString('date', {
      description: 'The day, in UTC.',
      example: '2026-11-21',
      bounds: { pattern: '^\\d{4}-\\d{2}-\\d{2}$', minLength: 10, maxLength: 10 },
    }),
    ...usedFields(t),
  }),
})

const UsageOfHour = builder.objectRef<Used>('UsageOfHour').implement({
  description: 'What a key has used in an hour.',
  fields: (t) => ({
    hour: t.expose('hour', {
      type: 'DateTime',
      description: 'When the hour begins, in UTC.',
      example: '2026-11-21T12:00:00.000Z',
    }),
    ...usedFields(t),
  }),
})

/** Adds what a key can ask about its past. */
export const addUsage = (tag: Tag) =>
  builder.queryFields((t) => ({
    usage: t.field({
      type: [UsageOfDay],
      description: 'What the calling key has used on each of the last days, today first. It is at most a minute old.',
      list: { limit: { argument: 'days', default: DEFAULT_USAGE_DAYS, max: MAX_USAGE_DAYS } },
      rest: { method: 'GET', path: '/quota/usage', tag, summary: 'Get your usage' },
      args: {
        days: t.arg.int({
          validate: usageDays,
          defaultValue: DEFAULT_USAGE_DAYS,
          description: `How many days, 1 to ${MAX_USAGE_DAYS}.`,
          example: 7,
        }),
      },
      resolve: (_root, { days }, { usage }) => usage('day', days ?? DEFAULT_USAGE_DAYS),
    }),
    usageByHour: t.field({
      type: [UsageOfHour],
      description:
        'What the calling key has used in each of the last hours, this one first. It is at most a minute old.',
      list: { limit: { argument: 'hours', default: DEFAULT_USAGE_HOURS, max: MAX_USAGE_HOURS } },
      rest: { method: 'GET', path: '/quota/usage/hours', tag, summary: 'Get your usage by hour' },
      args: {
        hours: t.arg.int({
          validate: usageHours,
          defaultValue: DEFAULT_USAGE_HOURS,
          description: `How many hours, 1 to ${MAX_USAGE_HOURS}.`,
          example: 3,
        }),
      },
      resolve: (_root, { hours }, { usage }) => usage('hour', hours ?? DEFAULT_USAGE_HOURS),
    }),
  }))
