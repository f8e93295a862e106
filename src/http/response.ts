import type { ServerResponse } from 'node:http'

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

/** Writes an answer, with its length. */
export function send(res: ServerResponse, { status, headers, body }: HttpResponse): void {
  if (body !== undefined) headers['content-length'] = String(Buffer.byteLength(body))
  res.writeHead(status, headers)
  if (res.req.method === 'HEAD') res.end()
  else res.end(body)
}
