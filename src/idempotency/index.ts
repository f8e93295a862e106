import { createHash } from 'node:crypto'
import { Prisma, type PrismaClient } from '../../prisma/generated/client/client.js'
import { ApiError, catalogue, type ErrorCode } from '../../schema/errors.js'
import { sweepRegularly } from '../database/sweep.js'
import type { RequestContext } from '../http/context.js'
import { errorResponse, toApiError } from '../http/errors.js'
import type { HttpResponse } from '../http/response.js'
import type { Logger } from '../log.js'

/** The longest Idempotency-Key in characters, and the longest answer that is kept in bytes. */
export const MAX_KEY = 255
export const MAX_ANSWER = 65_536

const SWEEP_MS = 60_000

type Transaction = Prisma.TransactionClient

/** The outcome of a request. */
export interface Outcome {
  response: HttpResponse
  /** Why a resolver refused the request. Then its changes are rolled back. */
  refusal?: ErrorCode
}

/** Performs a request. Throws what its resolver throws, if that is all there is to answer. */
type Perform = (prisma: Transaction) => Promise<Outcome>

interface IdempotentRequest {
  callerId: number
  key: string
  /** SHA-256 of method, path and body. */
  fingerprint: string
}

class RollBack extends Error {
  constructor(readonly outcome?: Outcome) {
    super()
  }
}

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
export function createIdempotency({ prisma, log }: { prisma: PrismaClient; log: Logger }) {
  /**
   * The kept response. If none is kept, other gateways return 409 until the transaction ends. The lock ends with the
   * connection, so a killed gateway blocks no other.
   *
   * @throws ApiError conflict (the first request is still running), idempotency_mismatch
   */
  async function find(transaction: Transaction, { callerId, key, fingerprint }: IdempotentRequest) {
    type Found = {
      isLocked: boolean
      fingerprint: string | null
      status: number
      headers: HttpResponse['headers']
      body: string
    }
    const [found] = await transaction.$queryRaw<[Found]>`
      SELECT lock AS "isLocked", fingerprint, status, headers, body
      FROM pg_try_advisory_xact_lock(hashtextextended(${key}, ${callerId})) AS lock
      LEFT JOIN "IdempotentAnswer"
        ON "callerId" = ${callerId} AND key = ${key} AND "createdAt" > now() - interval '24 hours'`
    if (!found.isLocked)
      throw new ApiError('conflict', 'A request with this Idempotency-Key is still running.', { 'retry-after': '1' })
    if (found.fingerprint === null) return
    if (found.fingerprint !== fingerprint) throw new ApiError('idempotency_mismatch')
    const { status, headers, body } = found
    return { status, headers: { ...headers, 'idempotency-replayed': 'true' }, body }
  }

  /** Keeps an answer; returns false if another gateway has kept one since `find` looked. */
  async function keep(
    transaction: Transaction,
    request: IdempotentRequest,
    { status, headers, body = '' }: HttpResponse,
  ) {
    const { callerId, key, fingerprint } = request
    const kept = await transaction.$executeRaw`
      INSERT INTO "IdempotentAnswer" AS old ("callerId", key, fingerprint, status, headers, body)
      VALUES (${callerId}, ${key}, ${fingerprint}, ${status}, ${headers}, ${String(body)})
      ON CONFLICT ("callerId", key) DO UPDATE
        SET fingerprint = excluded.fingerprint, status = excluded.status, headers = excluded.headers,
          body = excluded.body, "createdAt" = excluded."createdAt"
        WHERE old."createdAt" <= now() - interval '24 hours'`
    return kept === 1
  }

  async function perform(request: IdempotentRequest, context: RequestContext, answer: Perform): Promise<HttpResponse> {
    const refuse = (error: unknown): Outcome => {
      const refusal = toApiError(error, log, context)
      return { response: errorResponse(refusal, context), refusal: refusal.code }
    }
    try {
      return await prisma.$transaction(async (transaction) => {
        const kept = await find(transaction, request)
        if (kept) return kept
        const outcome = await answer(transaction).catch(refuse)
        if (outcome.refusal) throw new RollBack(outcome)
        const { response } = outcome
        const length = Buffer.byteLength(response.body ?? '')
        if (length > MAX_ANSWER)
          throw new ApiError(
            'invalid_request',
            `The response would have ${length} bytes; with an Idempotency-Key at most ${MAX_ANSWER} are possible. Select fewer fields.`,
          )
        if (!(await keep(transaction, request, response))) throw new RollBack()
        return response
      })
    } catch (error) {
      if (!(error instanceof RollBack)) throw error
      if (!error.outcome) return perform(request, context, answer)
      const { response, refusal } = error.outcome
      // Only refusals that depend on the stored data.
      if (!refusal || ![404, 409, 422].includes(catalogue[refusal].status)) return response
      return prisma.$transaction(async (transaction) => {
        const kept = await find(transaction, request)
        if (!kept) await keep(transaction, request, response)
        return kept ?? response
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
