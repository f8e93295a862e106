import { createHash } from 'node:crypto'
import { ApiError, catalogue, invalidRequest } from '../../../schema/kit/errors.js'
import type { Logger } from '../../engines/observe/index.js'
import {
  type Guard,
  guarded,
  isDuplicate,
  MustRepeat,
  type Query,
  type Statement,
  type Undo,
} from '../../engines/postgres/index.js'
import type { CreateTransact, NamedRow } from '../context/index.js'
import { type Database, purgeRegularly } from '../database/index.js'
import { type Body, errorResponse, type HttpRequest, type HttpResponse, toApiError } from '../http/index.js'
import type { Caller } from '../keys/index.js'
import type { Reply } from '../reply/index.js'

/** The longest Idempotency-Key, in characters. */
export const MAX_KEY = 255
/** The longest answer that is kept, in bytes. */
export const MAX_ANSWER = 65_536
export const MAX_BATCH_ANSWER = 4 * MAX_ANSWER

const PURGE_MS = 60_000

/** Performs a request. Throws what its resolver throws, if that is all there is to answer. */
type Perform = (query: Query) => Promise<Performed>

interface Performed extends Reply {
  /** It has changed nothing, or what it has changed must be undone. */
  isRefused?: boolean
}

export interface KeyedRequest {
  request: HttpRequest
  /** The query string, if it is a part of the request. */
  search?: string
  body: Body
  caller: Caller
  operationName: string | undefined
  /** What the request changes, as its arguments name it. */
  rows?: readonly NamedRow[]
  isBatch: boolean
}

interface Found {
  /** Whether the request may be performed. */
  isFree: boolean
  /** null if no answer is kept, like all that follow. */
  isExpired: boolean | null
  /** SHA-256 of method, path, query string and body. */
  fingerprint: string
  status: number
  headers: HttpResponse['headers']
  body: string
}

const EXPIRED = `"createdAt" <= now() - interval '24 hours'`

/** Locks the key until the transaction ends, unless another transaction has locked it, and reads its answer. */
const look = (first: number) => `
  SELECT *, "isLocked" AND "isExpired" IS NOT false AS "isFree" FROM (
    SELECT lock AS "isLocked", ${EXPIRED} AS "isExpired", fingerprint, status, headers, body
    FROM pg_try_advisory_xact_lock(hashtextextended($${first}, $${first + 1})) AS lock
    LEFT JOIN "public"."IdempotentAnswer" ON "callerId" = $${first + 1} AND key = $${first}) "answer"`

const tables = ['IdempotentAnswer']

const LOOK: Statement = { kind: 'LOCK', tables, text: look(1) }

// Another request may have kept a new answer since this one has looked.
const FORGET: Statement = {
  kind: 'DELETE',
  tables,
  text: `DELETE FROM "public"."IdempotentAnswer" WHERE "callerId" = $1 AND key = $2 AND ${EXPIRED}`,
}

const KEEP: Statement = {
  kind: 'INSERT',
  tables,
  text: `INSERT INTO "public"."IdempotentAnswer" ("callerId", key, fingerprint, status, headers, body) VALUES ($1, $2, $3, $4, $5, $6)`,
  isLast: true,
}

/** The kept response, or why there is none; undefined if the request must be performed now. */
function judge({ isFree, isExpired, fingerprint: first, status, headers, body }: Found, fingerprint: string) {
  if (isFree) return
  if (isExpired !== false)
    return new ApiError('conflict', 'A request with this Idempotency-Key is still running.', { 'retry-after': '1' })
  if (first !== fingerprint) return new ApiError('idempotency_mismatch')
  return { status, headers: { ...headers, 'idempotency-replayed': 'true' }, body }
}

type Keyed = [callerId: number, key: string, fingerprint: string]

async function keep(query: Query, keyed: Keyed, { status, headers, body = '' }: HttpResponse, max: number) {
  const length = Buffer.byteLength(body)
  if (length > max)
    throw invalidRequest(
      `The response would have ${length} bytes; with an Idempotency-Key at most ${max} are possible. Select fewer fields.`,
    )
  await query(KEEP, [...keyed, status, headers, String(body)]).catch((error) => {
    throw isDuplicate(error) ? new MustRepeat('Another gateway has kept an answer meanwhile.') : error
  })
}

/** Undoes what a refused request has changed before it was refused. The transaction goes on. */
export async function undoing<P extends Pick<Performed, 'isRefused'>>(undo: Undo, perform: () => Promise<P>) {
  const performed = await perform()
  if (performed.isRefused) await undo()
  return performed
}

/**
 * The request's Idempotency-Key.
 *
 * @throws ApiError invalid_request
 */
export function readIdempotencyKey({ head: { rawHeaders, headers } }: HttpRequest): string | undefined {
  const key = headers['idempotency-key']
  if (key === undefined) return
  const names = rawHeaders.filter((name, i) => i % 2 === 0 && name.toLowerCase() === 'idempotency-key')
  if (names.length > 1) throw invalidRequest('The header Idempotency-Key must not be repeated.')
  if (!/^[\x20-\x7e]+$/.test(String(key)) || key.length > MAX_KEY)
    throw invalidRequest(`The header Idempotency-Key must be 1 to ${MAX_KEY} printable ASCII characters.`)
  return String(key)
}

/**
 * Performs each request with an Idempotency-Key once, and replays its response for 24 hours, on every gateway. The
 * response is kept in the transaction that performs the request, so that a crash cannot separate the two. The lock of the
 * key ends with the transaction or its connection, so a killed gateway blocks no other.
 */
export function createIdempotency({ query }: Pick<Database, 'query'>, createTransact: CreateTransact, log: Logger) {
  return {
    /**
     * Calls `perform` with a transaction and keeps its response, or returns the response that is kept already.
     *
     * @throws ApiError conflict, idempotency_mismatch
     */
    async once(keyed: KeyedRequest, key: string, perform: Perform): Promise<Reply> {
      const { request, search = '', caller, body, operationName = '', rows = [], isBatch } = keyed
      if (body instanceof ApiError) throw new ApiError('internal')
      const callerId = caller.key.originId ?? caller.key.id
      const fingerprint = createHash('sha256')
        .update(`${request.method} ${request.path}${search && `?${search}`}\n`)
        .update(body)
        .digest('hex')
      // A document can have any set of fields, and names of bulkheads are kept.
      const bulkhead = `keyed ${operationName.includes(',') ? 'several' : operationName}`
      const refuse = (error: unknown): Performed => {
        const refusal = toApiError(error, log, request.id)
        return { response: errorResponse(refusal, request), refusal: refusal.code, isRefused: true }
      }
      /** A result that is not kept does not depend on how the transaction ends. */
      let unkept: Reply | undefined

      async function attempt(query: Query, undo: Undo): Promise<Reply> {
        unkept = undefined
        const looked: { found?: Found; verdict?: ReturnType<typeof judge> } = {}
        const guard: Guard = {
          question: LOOK,
          select: look,
          values: [key, callerId],
          judge(row) {
            looked.found = row as unknown as Found
            looked.verdict = judge(looked.found, fingerprint)
            // It ends what is performed. Its reply is not used then.
            return looked.verdict && new ApiError('conflict')
          },
        }
        const { response, refusal, isRefused } = await perform(guarded(query, guard)).catch(refuse)
        if (isRefused && !looked.verdict) await undo()
        // What was performed has sent no statement, or its first one has failed.
        if (!looked.found) guard.judge((await query(LOOK, guard.values))[0] ?? {})
        if (looked.verdict instanceof ApiError) throw looked.verdict
        if (looked.verdict) return { response: looked.verdict }
        // Only refusals that depend on the stored data are kept: repeating the others is safe.
        const isKept = !isRefused || (refusal && [404, 409, 422].includes(catalogue[refusal].status))
        if (!isKept) unkept = { response, refusal }
        if (isKept && looked.found?.isExpired) await query(FORGET, [callerId, key])
        if (isKept) await keep(query, [callerId, key, fingerprint], response, isBatch ? MAX_BATCH_ANSWER : MAX_ANSWER)
        return { response, refusal }
      }

      try {
        return await createTransact(caller)(attempt, { rows, bulkhead })
      } catch (error) {
        if (unkept) return unkept
        throw error
      }
    },
    /** Ends the deletion of expired answers. */
    close: purgeRegularly({
      query,
      log,
      table: 'IdempotentAnswer',
      condition: EXPIRED,
      everyMs: PURGE_MS,
    }),
  }
}

export type Idempotency = ReturnType<typeof createIdempotency>
