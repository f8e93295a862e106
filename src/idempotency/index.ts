import { createHash } from 'node:crypto'
import { Prisma } from '../../prisma/generated/client/client.js'
import { ApiError, catalogue, type ErrorCode } from '../../schema/errors.js'
import { type Database, isDuplicate, type Transaction } from '../database/index.js'
import { sweepRegularly } from '../database/sweep.js'
import type { RequestContext } from '../http/context.js'
import { errorResponse, toApiError } from '../http/errors.js'
import type { HttpResponse } from '../http/response.js'
import type { Logger } from '../log.js'

/** The longest Idempotency-Key in characters, and the longest answer that is kept in bytes. */
export const MAX_KEY = 255
export const MAX_ANSWER = 65_536

const SWEEP_MS = 60_000

type IdempotencyDatabase = Pick<Database, 'prisma' | 'transaction'>

/** The outcome of a request. */
export interface Outcome {
  response: HttpResponse
  /** Why a resolver refused the request. Then its changes are rolled back. */
  refusal?: ErrorCode
}

/** Performs a request. Throws what its resolver throws, if that is all there is to answer. */
type Perform = (prisma: Prisma.TransactionClient) => Promise<Outcome>

interface IdempotentRequest {
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

interface Found {
  isLocked: boolean
  /** null if no answer is kept, like all that follow. */
  isExpired: boolean | null
  fingerprint: string
  status: number
  headers: HttpResponse['headers']
  body: string
}

const FIND = `
  SELECT lock AS "isLocked", "createdAt" <= now() - interval '24 hours' AS "isExpired", fingerprint, status, headers, body
  FROM pg_try_advisory_xact_lock(hashtextextended($1, $2)) AS lock
  LEFT JOIN "IdempotentAnswer" ON "callerId" = $2 AND key = $1`

const FORGET = 'DELETE FROM "IdempotentAnswer" WHERE "callerId" = $1 AND key = $2'

const KEEP = `
  INSERT INTO "IdempotentAnswer" ("callerId", key, fingerprint, status, headers, body) VALUES ($1, $2, $3, $4, $5, $6)`

/** Whether KEEP failed because an answer is kept. */
const isKept = (error: unknown) => isDuplicate(error, 'IdempotentAnswer_pkey')

/**
 * The request's Idempotency-Key.
 *
 * @throws ApiError invalid_request
 */
export function readIdempotencyKey({ head: { rawHeaders, headers } }: RequestContext): string | undefined {
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
   * The kept response. If none is kept, other gateways return 409 until the transaction ends. The lock ends with the
   * connection, so a killed gateway blocks no other.
   *
   * @throws ApiError conflict (the first request is still running), idempotency_mismatch
   */
  async function find({ query }: Transaction, { callerId, key, fingerprint }: IdempotentRequest) {
    const [found] = await query<Found>({ text: FIND, values: [key, callerId] })
    if (!found?.isLocked)
      throw new ApiError('conflict', 'A request with this Idempotency-Key is still running.', { 'retry-after': '1' })
    if (found.isExpired) await query({ text: FORGET, values: [callerId, key] })
    if (found.isExpired !== false) return
    if (found.fingerprint !== fingerprint) throw new ApiError('idempotency_mismatch')
    const { status, headers, body } = found
    return { status, headers: { ...headers, 'idempotency-replayed': 'true' }, body }
  }

  /** The statement that keeps an answer. It fails if another gateway has kept one since `find` looked. */
  const keep = ({ callerId, key, fingerprint }: IdempotentRequest, { status, headers, body = '' }: HttpResponse) => ({
    text: KEEP,
    values: [callerId, key, fingerprint, status, headers, String(body)],
  })

  async function perform(request: IdempotentRequest, context: RequestContext, answer: Perform): Promise<HttpResponse> {
    const refuse = (error: unknown): Outcome => {
      const refusal = toApiError(error, log, context)
      return { response: errorResponse(refusal, context), refusal: refusal.code }
    }
    try {
      return await transact(async (transaction) => {
        const kept = await find(transaction, request)
        if (kept) return { result: kept }
        // Set by an earlier attempt, if this one repeats it.
        context.refusal = undefined
        const { response, refusal } = await answer(transaction.prisma()).catch(refuse)
        if (refusal) throw new RollBack(response, refusal)
        const length = Buffer.byteLength(response.body ?? '')
        if (length > MAX_ANSWER)
          throw new ApiError(
            'invalid_request',
            `The response would have ${length} bytes; with an Idempotency-Key at most ${MAX_ANSWER} are possible. Select fewer fields.`,
          )
        return { result: response, last: keep(request, response) }
      })
    } catch (error) {
      if (isKept(error)) return perform(request, context, answer)
      if (!(error instanceof RollBack)) throw error
      const { response, refusal } = error
      // Only refusals that depend on the stored data.
      if (![404, 409, 422].includes(catalogue[refusal].status)) return response
      return transact(async (transaction) => {
        const kept = await find(transaction, request)
        return kept ? { result: kept } : { result: response, last: keep(request, response) }
      })
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
    async once(context: RequestContext, key: string, answer: Perform): Promise<HttpResponse> {
      const { key: caller, method, path, body } = context
      if (!caller || body instanceof ApiError) throw new ApiError('internal')
      const fingerprint = createHash('sha256').update(`${method} ${path}\n`).update(body).digest('hex')
      return perform({ callerId: caller.originId ?? caller.id, key, fingerprint }, context, answer)
    },
    close: stopSweeping,
  }
}

export type Idempotency = ReturnType<typeof createIdempotency>
