import { hash, randomBytes } from 'node:crypto'
import { crc32 } from 'node:zlib'
import type { ApiKey, Prisma, PrismaClient } from '../../../prisma/generated/client/client.js'
import { plans } from '../../../schema/kit/plans.js'
import type { Subject } from '../../engines/rate-limit/index.js'

/** What a gateway keeps of a key: not what only admins see. */
export type Key = Omit<ApiKey, 'email' | 'note'>

/** Lengths of the windows in seconds. Only tests have others. */
export const windowSeconds = { minute: 60, day: 86_400, address: 60 }

const checksum = (text: string) => crc32(text).toString(16).padStart(8, '0')

/**
 * A new secret: `petstore_`, 160 random bits and a CRC-32, both in hexadecimal. Secret scanners recognize it, and a
 * mistyped one is refused without a database look-up. The prefix tells keys apart in lists.
 */
export function createSecret() {
  const random = `petstore_${randomBytes(20).toString('hex')}`
  const key = random + checksum(random)
  return { key, ...storedSecret(key) }
}

/** What the database stores of a secret. */
export const storedSecret = (key: string) => ({ prefix: key.slice(0, 17), hash: hashSecret(key) })

const hashSecret = (secret: string) => hash('sha256', secret, 'hex')

/** Whether a text looks like a secret. */
export const hasForm = (text: string) => /^petstore_[0-9a-f]{48}$/.test(text)

/** Whether a text has the form and the checksum of a secret. */
export const isSecret = (text: string) => hasForm(text) && checksum(text.slice(0, -8)) === text.slice(-8)

/** Whether the moment of a key's row has come: its revocation, or the end of the key or of its ban. */
export const isOver = (end: Date | null) => end !== null && !(end.getTime() > Date.now())

/** The subject and windows of a key's requests. */
export function keySubject({ id, plan, minuteLimit, dayLimit }: Key, seconds = windowSeconds): Subject {
  const limits = plans[plan] ?? { minute: minuteLimit ?? 0, day: dayLimit ?? 0 }
  return {
    id: `key:${id}`,
    bannable: true,
    windows: [
      { name: 'minute', limit: limits.minute, seconds: seconds.minute },
      { name: 'day', limit: limits.day, seconds: seconds.day },
    ],
  }
}

/** Requests without a valid key are limited by address, so that keys cannot be guessed quickly. */
export const addressSubject = (address: string, seconds = windowSeconds): Subject => ({
  id: `address:${address}`,
  bannable: false,
  windows: [{ name: 'address', limit: 60, seconds: seconds.address }],
})

/** How long a command waits for a row that another session has locked. Through a pooler, a session cannot say so. */
const PATIENCE = '30s'

/** Writes keys in a transaction that says who it is: the history of keys shows all others as changes in the database. */
export const writeKeys = <T>(
  prisma: PrismaClient,
  source: 'command line' | 'gateway',
  write: (transaction: Prisma.TransactionClient) => Promise<T>,
): Promise<T> =>
  prisma.$transaction(async (transaction) => {
    await transaction.$executeRaw`
      SELECT set_config('petstore.source', ${source}, true), set_config('statement_timeout', ${PATIENCE}, true)`
    return write(transaction)
  })
