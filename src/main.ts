import { setTimeout as delay } from 'node:timers/promises'
import { seed } from '../prisma/seed.js'
import { demoKeys } from './admin/demo-keys.js'
import { createApp } from './app.js'
import { openDatabase } from './database/index.js'
import { listen } from './http/server.js'
import { createLog } from './log.js'
import { openRateLimiter } from './rate-limit/index.js'
import { readSettings, StartupError } from './settings.js'

// Closes everything that was opened, in the order of opening.
const closers: (() => unknown)[] = []

async function closeAll() {
  for (const close of closers.splice(0).reverse()) await close()
}

async function start() {
  const settings = readSettings()
  const log = createLog(settings.LOG_LEVEL)

  let stopping = false
  async function stop(reason: string, code = 0) {
    if (stopping) return
    stopping = true
    log.info({ reason }, 'stopping')
    await closeAll()
    process.exit(code)
  }
  for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop(signal))

  const database = await openDatabase(settings, {
    log,
    prepare: seed,
    onLost: (error) => stop(`the database ended: ${error.message}`, 1),
  })
  closers.push(() => database.close())
  const rateLimiter = await openRateLimiter({
    redisUrl: settings.REDIS_URL,
    banAfter: settings.BAN_AFTER,
    banSeconds: settings.BAN_SECONDS,
    log,
  })
  closers.push(() => rateLimiter.close())

  const app = createApp({ settings, database, rateLimiter, log })
  closers.push(() => app.close())
  const { PORT, ADMIN_PORT, HOST } = settings
  const server = await listen(app, { port: PORT, host: HOST })
  const admin = ADMIN_PORT
    ? await listen(app.admin, { port: ADMIN_PORT, host: HOST, setting: 'ADMIN_PORT' })
    : undefined
  closers.push(
    // Last, so that probes and metrics have answers for as long as requests have.
    () => admin?.close(),
    () => server.close(),
    () => delay(settings.DRAIN_SECONDS * 1000),
    () => app.drain(),
  )

  const base = settings.BASE_URL
  const lines = [`Pet Store at ${base}`, `  reference  ${base}/docs`, `  GraphiQL   ${base}/graphql`]
  lines.push(`  database   ${database.name}`)
  if (rateLimiter.state === 'memory')
    lines.push('  counters   in memory: they start at zero with each process (set REDIS_URL to keep and share them)')
  if (database.embedded) {
    const { Free } = await demoKeys(database.prisma, settings.DATA_DIR)
    lines.push('', 'Try it:', '', `curl -H "Authorization: Bearer ${Free}" "${base}/pets?limit=3"`)
  } else if ((await database.prisma.apiKey.count()) === 0)
    lines.push('', 'There are no keys yet. Create the first one: npm run keys -- create --name NAME --plan Free')
  process.stdout.write(`${lines.join('\n')}\n`)
}

start().catch(async (error) => {
  process.stderr.write(`${error instanceof StartupError ? error.message : (error?.stack ?? error)}\n`)
  await closeAll()
  process.exit(1)
})
