import { randomBytes } from 'node:crypto'

/** The trace that a request belongs to (W3C Trace Context), and the gateway's own span in it. */
export interface Trace {
  traceId: string
  spanId: string
  /** In hexadecimal: bit 0 says that the trace is sampled, bit 1 that its id is random. */
  flags: string
}

/** Version 00 has four fields; later versions may add more. Version ff and ids of zeros are invalid. */
const format = /^(?!ff|00.{53}-)[\da-f]{2}-(?!0{32})([\da-f]{32})-(?!0{16})[\da-f]{16}-([\da-f]{2})(?:-.*)?$/

/** The trace of a `traceparent`; undefined if it is absent or invalid, which is no error: the request has no trace. */
export function readTrace(traceparent: string | string[]): Trace | undefined {
  if (typeof traceparent !== 'string') return undefined
  const [, traceId, flags] = format.exec(traceparent) ?? []
  if (!traceId || !flags) return undefined
  // Unknown flags must not be passed on.
  const known = (Number.parseInt(flags, 16) & 0b11).toString().padStart(2, '0')
  return { traceId, spanId: randomBytes(8).toString('hex'), flags: known }
}

export const traceparent = ({ traceId, spanId, flags }: Trace) => `00-${traceId}-${spanId}-${flags}`
