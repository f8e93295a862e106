import type { PrismaClient } from '../../prisma/generated/client/client.js'
import type { ErrorCode } from '../../schema/kit/errors.js'

/** Arguments of an operation. An integer above 2^53 is a bigint. */
export type Args = Record<string, unknown>

export type Case = readonly [expected: 'success' | ErrorCode, args: Args]

/** What tests know of a resource: its rows, and what each of its operations is asked. */
export interface Resource {
  /** Its table, if it has rows of its own. Their ids are a sequence. */
  table?: string
  /** The statement that puts rows into it. The row with id 1 can be deleted; other rows refer to the one with id 2. */
  rows?: string
  /** Statements that add so many rows, for the plans of its list (test/list-plans.test.ts). */
  many?: (rows: number) => string[]
  /** All of its rows. */
  contents?: (prisma: PrismaClient) => Promise<unknown[]>
  /**
   * Cases by root field: every error that an operation has, and every argument in a success (test/parity.test.ts).
   */
  cases: Record<string, Case[]>
  /**
   * Bounds of numbers and texts (test/hostile-input.test.ts), by their name, or `NewOrder.quantity` where other inputs, or other
   * resources, have others. Names, descriptions and what lists have in common are bounded there.
   */
  bounds?: Record<string, Bounds>
  /** Valid values of inputs, by their names, or `NewOrder.quantity`, if not any text or number is valid. */
  values?: Record<string, unknown>
  /**
   * Values of filters, by their names, or `pets.status` where another resource has the same name: those that most rows have, and those that only the first or the last ones have
   * (test/support/skewed.ts). Every question that a list accepts is asked with them (test/list-plans.test.ts).
   */
  filters?: Record<string, unknown[]>
}

/** Accepted values, and rejected ones just beyond the bounds, each with a part of its error message. */
export interface Bounds {
  accepted: unknown[]
  rejected: [value: unknown, mentions: string][]
  /** Values on a bound that are valid, but that no row allows. */
  conflicting?: unknown[]
}

export const numbers = (least: number, most: number): Bounds => ({
  accepted: [least, most],
  rejected: [
    [least - 1, String(least)],
    [most + 1, String(most)],
  ],
})

/** A change of one thing under a condition: of what exists, and of what does not. */
export const conditional = (args: Args, missing: Args): Case[] => [
  ['success', { ...args, ifMatch: '*' }],
  ['invalid_request', { ...args, ifMatch: 'x' }],
  ['precondition_failed', { ...args, ifMatch: '"x", W/"y"' }],
  ['precondition_failed', { ...args, ...missing, ifMatch: '*' }],
]
