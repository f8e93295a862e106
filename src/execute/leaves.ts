import type { GraphQLLeafType } from 'graphql'
import { inspect } from 'graphql/jsutils/inspect.js'

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
