import Fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import { pino } from 'pino'
import type { createGuard } from './guard.js'

declare module 'fastify' {
  interface FastifyRequest {
    keyPrefix: string | undefined
  }
}

export const logLevel = process.env.LOG_LEVEL ?? 'info'

/** Lines are written asynchronously, as pino's documentation shows it for much traffic. */
export const logStream = () => pino.destination({ sync: false, minLength: 4_096 })

/** Fastify as a production service has it: structured logs, one line for each request, with what the gateway's has. */
export function createFastify() {
  // Fastify's own request logging writes two lines, and would be slower.
  const app = Fastify({ logger: { level: logLevel, stream: logStream() }, disableRequestLogging: true })
  app.decorateRequest('keyPrefix', undefined)
  app.addHook('onResponse', async (request, reply) => {
    const { id, method, keyPrefix, routeOptions } = request
    app.log.info(
      {
        requestId: id,
        operation: routeOptions.url,
        method,
        key: keyPrefix,
        status: reply.statusCode,
        durationMs: reply.elapsedTime,
      },
      'request',
    )
  })
  app.setErrorHandler((error: FastifyError, request, reply) => {
    const status = error.statusCode ?? 500
    if (status >= 500) request.log.error(error)
    const code = status >= 500 ? 'internal' : 'invalid_request'
    return reply.code(status).send({ code, message: status >= 500 ? 'Internal error.' : error.message, status })
  })
  return app
}

/** Every request needs a key, and counts against its limits. */
export function protect(app: FastifyInstance, { guard }: ReturnType<typeof createGuard>) {
  app.addHook('onRequest', async (request, reply) => {
    const { status, code, message, headers, prefix } = await guard(request.headers.authorization)
    request.keyPrefix = prefix
    reply.headers(headers)
    if (status) return reply.code(status).send({ code, message, status })
  })
}

/** Listens where the benchmark says, and stops when it says. */
export async function serve(app: FastifyInstance, close: () => unknown = () => {}) {
  process.once('SIGTERM', async () => {
    await app.close()
    await close()
    process.exit(0)
  })
  await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
}
