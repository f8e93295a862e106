import Fastify, { type FastifyError, type FastifyInstance } from 'fastify'
import type { createGuard } from './guard.js'

/** Fastify as a production service has it: structured logs at info, without a line for each request, as the gateway. */
export function createFastify() {
  const app = Fastify({ logger: { level: process.env.LOG_LEVEL ?? 'info' }, disableRequestLogging: true })
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
    const { status, code, message, headers } = await guard(request.headers.authorization)
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
