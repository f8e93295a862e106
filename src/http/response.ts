import type { ServerResponse } from 'node:http'
import { discardBody } from './body.js'

/** An answer before it is written. Names of headers are in lower case. */
export interface HttpResponse {
  status: number
  headers: Record<string, string>
  body?: string | Uint8Array
}

/** @param body JSON text */
export const jsonResponse = (body: string, status = 200, headers: Record<string, string> = {}): HttpResponse => ({
  status,
  headers: { 'content-type': 'application/json', ...headers },
  body,
})

/** Writes an answer, with its length. What of the request has not arrived is not needed. */
export function send(res: ServerResponse, { status, headers, body }: HttpResponse): void {
  const { req } = res
  if (body !== undefined) headers['content-length'] = String(Buffer.byteLength(body))
  res.writeHead(status, headers)
  const written = req.method === 'HEAD' ? undefined : body
  if (req.complete !== false) return void res.end(written)
  // A connection that is closed with unread bytes is reset, and the client may lose the response.
  if (headers.connection === 'close' || !res.shouldKeepAlive) {
    if (written === undefined) res.flushHeaders()
    else res.write(written)
    void discardBody(req).then(() => res.end())
  } else {
    res.end(written)
    void discardBody(req).then((isWhole) => isWhole || req.destroy())
  }
}
