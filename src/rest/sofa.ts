import type { ExecutionArgs, ExecutionResult } from 'graphql'
import { createSofa, createSofaRouter } from 'sofa-api'
import { restSchema } from '../../schema/index.js'
import { MAX_DATE_TIME } from '../../schema/scalars.js'
import { operations } from './operations.js'

type SofaConfig = Parameters<typeof createSofa>[0]

export interface RouterOptions extends Pick<SofaConfig, 'context' | 'errorHandler'> {
  execute?(args: ExecutionArgs): ExecutionResult | Promise<ExecutionResult>
}

/** An OpenAPI path template as SOFA's and find-my-way's routers write it: `/pets/{petId}` is `/pets/:petId`. */
export const routePath = (template: string) => template.replace(/\{(\w+)\}/g, ':$1')

const routes = Object.fromEntries(
  operations.map(({ type, name, field, rest }) => [
    `${type}.${name}`,
    {
      method: rest.method,
      path: routePath(rest.path),
      tags: [rest.tag],
      responseStatus: rest.status ?? 200,
      description: field.description ?? '',
    },
  ]),
) as SofaConfig['routes']

// Getters, because SOFA writes descriptions into the very objects it finds here: each reading gives a new one. No id
// is above 2^53 - 1 (a check constraint), so a greater one names nothing, and JavaScript clients hold each exactly.
const customScalars = {
  get Int64() {
    return { type: 'integer', format: 'int64', minimum: 1, maximum: Number.MAX_SAFE_INTEGER }
  },
  get DateTime() {
    return { type: 'string', format: 'date-time', maxLength: MAX_DATE_TIME }
  },
}

/**
 * SOFA's router over the REST schema: a route in `__routes` for each operation, and in `openAPIDocument` its own
 * description of them. It also has webhook routes, which nothing here may serve or describe.
 */
export const createRouter = (options: RouterOptions = {}) =>
  createSofaRouter(
    createSofa({ schema: restSchema, basePath: '/', routes, customScalars, ...(options as Partial<SofaConfig>) }),
  )
