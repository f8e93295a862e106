import { createHash } from 'node:crypto'
import { Prisma } from '../../prisma/generated/client/client.js'
import { ApiError, catalogue, type ErrorCode } from '../../schema/errors.js'
import type { Caller } from '../auth/index.js'
import { type Database, isDuplicate, isInvalidText, type TransactionLane } from '../database/index.js'
import { sweepRegularly } from '../database/sweep.js'
import type { Body } from '../http/body.js'
import { errorResponse, toApiError } from '../http/errors.js'
import type { HttpRequest } from '../http/request.js'
import type { HttpResponse } from '../http/response.js'
import type { Logger } from '../log.js'
import type { Result } from '../outcome.js'

/** The longest Idempotency-Key in characters, and the longest answer that is kept in bytes. */
export const MAX_KEY = 255
export const MAX_ANSWER = 65_536

const SWEEP_MS = 60_000

type IdempotencyDatabase = Pick<Database, 'prisma' | 'transaction'>

/** Performs a request. Throws what its resolver throws, if that is all there is to answer. */
type Perform = (prisma: Prisma.TransactionClient) => Promise<Result & { isRefused?: boolean }>

export interface KeyedRequest {
  request: HttpRequest
  body: Body
  caller: Caller
  operationName: string | undefined
  /** What the request changes, as its arguments name it. */
  row?: string
}

interface IdempotentRequest {
  lane: TransactionLane
  callerId: number
  key: string
  /** SHA-256 of method, path and body. */
  fingerprint: string
}

class RollBack extends Error {
  constructor(
    readonly response: HttpResponse,
    readonly refusal: ErrorCode,
  ) {
    super()
  }
}

/** The key is not new. An ApiError, because resolvers get it too. */
class KeyInUse extends ApiError {
  constructor() {
    super('conflict', 'A request with this Idempotency-Key is still running.', { 'retry-after': '1' })
  }
}

interface Found {
  isLocked: boolean
  /** null if no answer is kept, like all that follow. */
  isExpired: boolean | null
  fingerprint: string
  status: number
  headers: HttpResponse['headers']
  body: string
}

/** Locks the key until the transaction ends, unless another has locked it, and reads its answer. */
const FROM_LOCKED = `
  FROM pg_try_advisory_xact_lock(hashtextextended($1, $2)) AS lock
  LEFT JOIN "IdempotentAnswer" ON "callerId" = $2 AND key = $1`

/** Fails for a key that is not new, so that PostgreSQL performs nothing of what is sent after it. */
const CLAIM = `
  SELECT CASE WHEN lock AND key IS NULL THEN 'true' ELSE 'this Idempotency-Key is in use' END::boolean
  ${FROM_LOCKED}`

const FIND = `
  SELECT lock AS "isLocked", "createdAt" <= now() - interval '24 hours' AS "isExpired", fingerprint, status, headers, body
  ${FROM_LOCKED}`

const FORGET = 'DELETE FROM "IdempotentAnswer" WHERE "callerId" = $1 AND key = $2'

const KEEP = `
  INSERT INTO "IdempotentAnswer" ("callerId", key, fingerprint, status, headers, body) VALUES ($1, $2, $3, $4, $5, $6)`

/**
 * The request's Idempotency-Key.
 *
 * @throws ApiError invalid_request
 */
export function readIdempotencyKey({ head: { rawHeaders, headers } }: HttpRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return
  const names = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'idempotency-key')
  if (names.length > 1) throw new ApiError('invalid_request', 'The header Idempotency-Key must not be repeated.')
  if (!/^[\x20-\x7e]+$/.test(String(key)) || key.length > MAX_KEY)
    throw new ApiError(
      'invalid_request',
      `The header Idempotency-Key must be 1 to ${MAX_KEY} printable ASCII characters.`,
    )
  return String(key)
}

/**
 * Performs each request with an Idempotency-Key once, and replays its response for 24 hours, on every gateway. The
 * response is kept in the transaction that performs the request, so that a crash cannot separate the two.
 */
export function createIdempotency({ database, log }: { database: IdempotencyDatabase; log: Logger }) {
  const { prisma, transaction: transact } = database
  /**
   * Runs `answer` in a transaction that also keeps its response. Until it ends, other requests with the key return 409.
   * The lock ends with the connection, so a killed gateway blocks no other.
   *
   * @throws KeyInUse (nothing was performed)
   */
  async function keep(
    { lane, callerId, key, fingerprint }: IdempotentRequest,
    answer: (prisma: Prisma.TransactionClient) => Promise<HttpResponse>,
  ) {
    try {
      return await transact(lane, async (transaction) => {
        const claim = transaction.query({ text: CLAIM, values: [key, callerId] }).catch((error) => {
          throw isInvalidText(error) ? new KeyInUse() : error
        })
        const answering = answer(transaction.prisma(claim))
        await Promise.allSettled([claim, answering])
        await claim
        const response = await answering
        const { status, headers, body = '' } = response
        return {
          result: response,
          last: { text: KEEP, values: [callerId, key, fingerprint, status, headers, String(body)] },
        }
      })
    } catch (error) {
      // Another gateway has kept its answer since CLAIM looked.
      throw isDuplicate(error, 'IdempotentAnswer_pkey') ? new KeyInUse() : error
    }
  }

  /**
   * The kept response. An expired one is deleted.
   *
   * @throws ApiError conflict (the first request is still running), idempotency_mismatch
   */
  const replay = ({ callerId, key, fingerprint }: IdempotentRequest) =>
    transact<HttpResponse | undefined>({ name: 'replay' }, async ({ query }) => {
      const [found] = await query<Found>({ text: FIND, values: [key, callerId] })
      if (found?.isExpired === false) {
        const { status, headers, body } = found
        if (found.fingerprint !== fingerprint) throw new ApiError('idempotency_mismatch')
        return { result: { status, headers: { ...headers, 'idempotency-replayed': 'true' }, body } }
      }
      if (!found?.isLocked) throw new KeyInUse()
      return { result: undefined, ...(found.isExpired && { last: { text: FORGET, values: [callerId, key] } }) }
    })

  async function perform(request: IdempotentRequest, http: HttpRequest, answer: Perform): Promise<Result> {
    let partial: ErrorCode | undefined
    const refuse = (error: unknown) => {
      const refusal = toApiError(error, log, http.id)
      return { response: errorResponse(refusal, http), refusal: refusal.code, isRefused: true }
    }
    try {
      return await keep(request, async (transaction) => {
        const { response, refusal, isRefused } = await answer(transaction).catch(refuse)
        if (isRefused && refusal) throw new RollBack(response, refusal)
        partial = refusal
        const length = Buffer.byteLength(response.body ?? '')
        if (length > MAX_ANSWER)
          throw new ApiError(
            'invalid_request',
            `The response would have ${length} bytes; with an Idempotency-Key at most ${MAX_ANSWER} are possible. Select fewer fields.`,
          )
        return response
      })
        .then((response) => ({ response, refusal: partial }))
        .catch(async (error) => {
          if (!(error instanceof RollBack)) throw error
          const { response, refusal } = error
          // Only refusals that depend on the stored data are kept.
          if ([404, 409, 422].includes(catalogue[refusal].status)) await keep(request, async () => response)
          return { response, refusal }
        })
    } catch (error) {
      if (!(error instanceof KeyInUse)) throw error
      const response = await replay(request)
      return response ? { response } : perform(request, http, answer)
    }
  }

  const stopSweeping = sweepRegularly({
    prisma,
    log,
    table: 'IdempotentAnswer',
    condition: Prisma.sql`"createdAt" <= now() - interval '24 hours'`,
    everyMs: SWEEP_MS,
  })

  return {
    /**
     * Calls `answer` with a transaction and keeps its response, or returns the response that is kept already.
     *
     * @throws ApiError conflict, idempotency_mismatch
     */
    async once({ request, body, caller, operationName = '', row }: KeyedRequest, key: string, answer: Perform) {
      if (body instanceof ApiError) throw new ApiError('internal')
      const { method, path } = request
      const fingerprint = createHash('sha256').update(`${method} ${path}\n`).update(body).digest('hex')
      const lane = { name: `keyed ${operationName}`, row }
      const callerId = caller.key.originId ?? caller.key.id
      return perform({ lane, callerId, key, fingerprint }, request, answer)
    },
    close: stopSweeping,
  }
}

export type Idempotency = ReturnType<typeof createIdempotency>
