import { createHash } from 'node:crypto'
import { PrismaPg } from '@prisma/adapter-pg'
import Fastify from 'fastify'
import { Redis } from 'ioredis'
import { RateLimiterRedis, type RateLimiterRes } from 'rate-limiter-flexible'
import { type ApiKey, PrismaClient } from '../../prisma/generated/client/client.js'

// What a good engineer writes by hand on the same ORM: Fastify, Prisma, a key check with a small cache, the two windows
// of a plan in Redis, the specification's headers. It is the measure of "faster than what people write by hand".

const prisma = new PrismaClient({ adapter: new PrismaPg({ connectionString: process.env.DATABASE_URL }) })
const redis = new Redis(process.env.REDIS_URL as string)
const cache = new Map<string, { key: ApiKey; until: number }>()
const limiters = new Map<string, RateLimiterRedis>()

async function findKey(secret: string) {
  const hash = createHash('sha256').update(secret).digest('hex')
  const cached = cache.get(hash)
  if (cached && cached.until > Date.now()) return cached.key
  const key = await prisma.apiKey.findUnique({ where: { hash } })
  if (key) cache.set(hash, { key, until: Date.now() + 5_000 })
  return key
}

function limiter(name: string, points: number, duration: number) {
  const id = `${name}:${points}`
  const known = limiters.get(id)
  if (known) return known
  const made = new RateLimiterRedis({ storeClient: redis, keyPrefix: `peer:${name}`, points, duration })
  limiters.set(id, made)
  return made
}

const app = Fastify()

app.addHook('onRequest', async (request, reply) => {
  const secret = request.headers.authorization?.replace(/^Bearer /, '')
  const key = secret && (await findKey(secret))
  if (
    !key ||
    key.revokedAt ||
    (key.expiresAt && key.expiresAt < new Date()) ||
    (key.bannedUntil && key.bannedUntil > new Date())
  )
    return reply.code(401).send({ code: 'unauthorized', message: 'A valid key is needed.', status: 401 })
  const minuteLimit = key.minuteLimit ?? 60
  const dayLimit = key.dayLimit ?? 1_000
  try {
    const [minute, day] = await Promise.all([
      limiter('minute', minuteLimit, 60).consume(key.id),
      limiter('day', dayLimit, 86_400).consume(key.id),
    ])
    const binding = minute.remainingPoints <= day.remainingPoints ? minute : day
    reply.header('X-RateLimit-Limit', binding === minute ? minuteLimit : dayLimit)
    reply.header('X-RateLimit-Remaining', binding.remainingPoints)
    reply.header('X-RateLimit-Reset', Math.ceil((Date.now() + binding.msBeforeNext) / 1000))
  } catch (refusal) {
    const wait = Math.ceil((refusal as RateLimiterRes).msBeforeNext / 1000)
    return reply
      .code(429)
      .header('Retry-After', wait)
      .send({ code: 'rate_limited', message: `Wait ${wait} seconds.`, status: 429 })
  }
})

app.get<{ Params: { petId: string } }>('/pets/:petId', async (request, reply) => {
  if (!/^\d{1,19}$/.test(request.params.petId))
    return reply.code(400).send({ code: 'invalid_request', message: 'petId must be an integer.', status: 400 })
  const pet = await prisma.pet.findUnique({ where: { id: BigInt(request.params.petId) } })
  if (!pet) return reply.code(404).send({ code: 'not_found', message: 'There is no such pet.', status: 404 })
  return { id: Number(pet.id), name: pet.name, categoryId: Number(pet.categoryId), status: pet.status }
})

await app.listen({ port: Number(process.env.PORT), host: '127.0.0.1' })
process.on('SIGTERM', () => process.exit(0))
