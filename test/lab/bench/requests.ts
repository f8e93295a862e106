import { randomUUID } from 'node:crypto'
import { CATEGORIES } from './seed.js'
import type { Template } from './templates.js'

/** How large each random value may be. `{start}` leaves room for a full page. */
export const maximaFor = (pets: number) => ({
  pet: pets,
  /** There are at least as many as pets. */
  order: pets,
  start: Math.floor(pets * 0.9),
  category: CATEGORIES,
  quantity: 1000,
  /** Names that begin with `Pet 7`, `Pet 77` or `Pet 777`. */
  prefix: 999,
  few: 20,
  thousand: 1_000,
  limit: 50,
})

export type Maxima = ReturnType<typeof maximaFor>

/** A random value from 1 to each maximum, as text. */
export const draw = (maxima: Maxima, random = Math.random): Record<string, string> =>
  Object.fromEntries(Object.entries(maxima).map(([name, max]) => [name, String(1 + Math.floor(random() * max))]))

/** A request with these values. wrk.lua does the same in Lua. */
export function fill({ method, path, body, isIdempotent }: Template, values: Record<string, string>) {
  const filled = (text: string) => text.replace(/\{(\w+)\}/g, (_, name) => values[name] as string)
  return { method, path: filled(path), body: body && filled(body), isIdempotent }
}

export function choose(templates: Template[], random = Math.random): Template {
  let at = random() * templates.reduce((sum, { weight }) => sum + weight, 0)
  for (const template of templates) {
    at -= template.weight
    if (at < 0) return template
  }
  return templates[0] as Template
}

export const headersFor = (key: string, body?: string, isIdempotent = false) => ({
  authorization: `Bearer ${key}`,
  ...(body ? { 'content-type': 'application/json' } : {}),
  ...(isIdempotent ? { 'idempotency-key': randomUUID() } : {}),
})
