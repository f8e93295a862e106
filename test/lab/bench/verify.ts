import { isDeepStrictEqual } from 'node:util'
import { Refusal } from './lifecycle.js'
import type { RunningServer } from './processes.js'
import { draw, fill, headersFor, type Maxima } from './requests.js'
import { type ServerId, serverTitles } from './servers.js'
import { templatesFor, type Workload } from './workloads.js'

const SAMPLES = 10

/**
 * All servers answer the same questions with the same data before any of them is measured.
 *
 * @returns what the gateway counts for a request
 */
export async function verifySameAnswers(
  workload: Workload,
  servers: Map<ServerId, RunningServer>,
  { keys, maxima }: { keys: string[]; maxima: Maxima },
) {
  const costs: number[] = []
  for (const index of workload.templates.keys())
    for (let i = 0; i < SAMPLES; i++) {
      const values = draw(maxima)
      let expected: unknown
      for (const [id, server] of servers) {
        const template = templatesFor(workload, id)[index]
        if (!template) throw new Error(`${workload.title}: ${id} has no question ${index}`)
        const request = fill(template, values)
        const { cost, ...answer } = await ask(server, request, keys[i % keys.length] as string)
        if (id.startsWith('gateway')) costs.push(cost)
        if (id === 'gateway') expected = answer
        else if (!workload.isMixed && !isDeepStrictEqual(answer, expected))
          throw new Refusal(
            `${workload.title}: ${request.method} ${request.path} ${request.body ?? ''}\n` +
              `  ${serverTitles.gateway}: ${JSON.stringify(expected)}\n  ${serverTitles[id]}: ${JSON.stringify(answer)}`,
          )
      }
    }
  return { least: Math.min(...costs), most: Math.max(...costs) }
}

async function ask({ url }: RunningServer, request: ReturnType<typeof fill>, key: string) {
  const { method, path, body, isIdempotent } = request
  const response = await fetch(url + path, { method, body, headers: headersFor(key, body, isIdempotent) })
  const answer = await response.json()
  if (!response.ok || answer.errors || (Array.isArray(answer) && answer.length === 0))
    throw new Refusal(`${method} ${path} ${body ?? ''}: ${response.status} ${JSON.stringify(answer)}`)
  const isNew = method === 'POST' && path !== '/graphql'
  return {
    status: response.status,
    answer: comparable(isNew ? { ...answer, id: null } : answer),
    cost: Number(response.headers.get('x-ratelimit-cost')),
  }
}

/**
 * The data without its form: a field without a value may be null or absent, and each server has cursors of its own.
 * PostGraphile puts lists into connections, and writes ids as text.
 */
function comparable(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(comparable)
  if (typeof value === 'string') return /^\d+$/.test(value) ? Number(value) : value
  if (typeof value !== 'object' || value === null) return value
  const names = Object.keys(value)
  if (names.length === 1 && 'nodes' in value) return comparable(value.nodes)
  const fields = Object.entries(value).filter(([name, field]) => field !== null && name !== 'endCursor')
  return Object.fromEntries(fields.map(([name, field]) => [name, comparable(field)]))
}
