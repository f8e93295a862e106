import type { ApiKey } from '../../prisma/generated/client/client.js'
import { ApiError } from '../../schema/errors.js'
import type { Subject } from '../rate-limit/index.js'

/** Who sends a request. */
export interface Caller {
  readonly key: ApiKey
  readonly subject: Subject
  /** How long the request has waited for its key, in milliseconds. */
  readonly waitedMs: number
}

/** @throws ApiError forbidden, if the key may only read */
export function requireWriteAccess({ key }: Caller): void {
  if (key.access === 'read') throw new ApiError('forbidden')
}
