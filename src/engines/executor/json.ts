import type { GraphQLLeafType } from 'graphql'
import { inspect } from 'graphql/jsutils/inspect.js'

/** Values as JSON; and by index those that could not be written, with why. */
export interface Column {
  texts: string[]
  failed: Map<number, unknown> | undefined
}

export const createColumn = (count: number): Column => ({ texts: new Array(count).fill('null'), failed: undefined })

export function fail(column: Column, index: number, error: unknown): void {
  column.failed ??= new Map()
  if (!column.failed.has(index)) column.failed.set(index, error)
  column.texts[index] = 'null'
}

export function failedColumn(count: number, error: unknown): Column {
  const column = createColumn(count)
  for (let i = 0; i < count; i++) fail(column, i, error)
  return column
}

/** Puts a column of some of the values into that of all. */
export function put(column: Column, { texts, failed }: Column, indexes: readonly number[]): void {
  for (const [k, i] of indexes.entries()) column.texts[i] = texts[k] as string
  for (const [k, error] of failed ?? []) fail(column, indexes[k] as number, error)
}

// biome-ignore lint/suspicious/noControlCharactersInRegex: what JSON escapes
const ESCAPED = /["\\\u0000-\u001f\ud800-\udfff]/
/** A longer text is not searched for what JSON escapes before JSON.stringify does. */
const SHORT = 500

/** The last long text, which aliases repeat. */
let last = { text: '', json: '""' }

function longJsonOf(text: string): string {
  if (text !== last.text) last = { text, json: JSON.stringify(text) }
  return last.json
}

/** A leaf as JSON. JSON.stringify takes three times as long for most texts and numbers. */
function jsonOf(value: unknown): string {
  switch (typeof value) {
    case 'string':
      if (value.length >= SHORT) return longJsonOf(value)
      return ESCAPED.test(value) ? JSON.stringify(value) : `"${value}"`
    case 'number':
      return Number.isFinite(value) ? `${value}` : 'null'
    case 'boolean':
      return value ? 'true' : 'false'
    default:
      return JSON.stringify(value) ?? 'null'
  }
}

/** Writes a value of a leaf type. It throws if the type does not have the value. */
export function leafWriterOf(type: GraphQLLeafType): (value: unknown) => string {
  return (value) => {
    const serialized = type.serialize(value)
    if (serialized !== null && serialized !== undefined) return jsonOf(serialized)
    const call = `${inspect(type)}.serialize(${inspect(value)})`
    throw new Error(`Expected \`${call}\` to return non-nullable value, returned: ${inspect(serialized)}`)
  }
}
