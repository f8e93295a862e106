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
  /** All of its rows. */
  contents?: (prisma: PrismaClient) => Promise<unknown[]>
  /**
   * Cases by root field: every error that an operation has, and every argument in a success (test/parity.test.ts).
   */
  cases: Record<string, Case[]>
}

/** A change of one thing under a condition: of what exists, and of what does not. */
export const conditional = (args: Args, missing: Args): Case[] => [
  ['success', { ...args, ifMatch: '*' }],
  ['invalid_request', { ...args, ifMatch: 'x' }],
  ['precondition_failed', { ...args, ifMatch: '"x", W/"y"' }],
  ['precondition_failed', { ...args, ...missing, ifMatch: '*' }],
]
