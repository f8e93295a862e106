import { type Holding, MemoryBudget } from '../http/index.js'
import type { KnownDocument } from './documents.js'

/** What parsed documents, and the texts of persisted ones, may take in memory, in bytes. */
const MAX_DOCUMENTS = 67_108_864
const MAX_PERSISTED = 16_777_216

/** A cache that API keys share. If it is full, the key that fills most of it loses what was used least recently. */
function createCache<Value>(maxBytes: number, bytesOf: (value: Value) => number) {
  const entries = new Map<string, Holding & { value: Value }>()
  const budget = new MemoryBudget(maxBytes)
  return {
    get(name: string): Value | undefined {
      const entry = entries.get(name)
      if (!entry) return
      // It becomes the one that was used last.
      budget.release(entry)
      budget.hold(entry, entry.bytes)
      return entry.value
    },
    keep(name: string, value: Value, holder: string) {
      if (entries.has(name)) return
      const entry = { value, holders: [holder], bytes: 0, giveUp: () => entries.delete(name) }
      entries.set(name, entry)
      budget.hold(entry, bytesOf(value))
    },
  }
}

/** The documents that clients send repeatedly, by their texts: each is parsed once. */
export const createDocuments = () => createCache<KnownDocument>(MAX_DOCUMENTS, ({ weight }) => weight)

/** The texts of documents that clients send by hash. */
export const createPersisted = () => createCache<string>(MAX_PERSISTED, ({ length }) => 2 * length + 500)
