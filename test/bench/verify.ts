import { isDeepStrictEqual } from 'node:util'
import { Refusal } from './lifecycle.js'
import type { RunningServer } from './processes.js'
import { fill, headersFor, type Maxima } from './requests.js'
import { type ServerId, serverTitles } from './servers.js'
import type { Workload } from './workloads.js'

const SAMPLES = 10

/** All servers answer the same requests with the same data before any of them is measured. */
export async function verifySameAnswers(
  { title, templates }: Workload,
  servers: Map<ServerId, RunningServer>,
  { keys, maxima }: { keys: string[]; maxima: Maxima },
) {
  for (const template of templates) {
    for (let i = 0; i < SAMPLES; i++) {
      const request = fill(template, maxima)
      const answers = new Map<ServerId, unknown>()
      for (const [id, server] of servers) answers.set(id, await ask(server, request, keys[i % keys.length] as string))
      const expected = answers.get('gateway')
      for (const [id, answer] of answers)
        if (!isDeepStrictEqual(answer, expected))
          throw new Refusal(
            `${title}: ${request.method} ${request.path} ${request.body ?? ''}\n` +
              `  ${serverTitles.gateway}: ${JSON.stringify(expected)}\n  ${serverTitles[id]}: ${JSON.stringify(answer)}`,
          )
    }
  }
}

async function ask({ url }: RunningServer, request: ReturnType<typeof fill>, key: string) {
  const { method, path, body, isIdempotent } = request
  const response = await fetch(url + path, { method, body, headers: headersFor(key, body, isIdempotent) })
  const answer = await response.json()
  if (!response.ok || answer.errors || (Array.isArray(answer) && answer.length === 0))
    throw new Refusal(`${method} ${path} ${body ?? ''}: ${response.status} ${JSON.stringify(answer)}`)
  return { status: response.status, answer: comparable(answer, method === 'POST' && path !== '/graphql') }
}

/** New ids differ by nature. A field without a value may be null or absent. */
function comparable(value: unknown, isNew: boolean): unknown {
  if (Array.isArray(value)) return value.map((item) => comparable(item, false))
  if (typeof value !== 'object' || value === null) return value
  const fields = Object.entries(value).filter(([name, field]) => field !== null && !(isNew && name === 'id'))
  return Object.fromEntries(fields.map(([name, field]) => [name, comparable(field, false)]))
}
