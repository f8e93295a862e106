import { ApiError } from '../../schema/errors.js'
import type { RequestContext } from '../http/context.js'

/** @throws ApiError forbidden, if the key may only read */
export function requireWriteAccess({ key }: RequestContext): void {
  if (key?.access === 'read') throw new ApiError('forbidden')
}
