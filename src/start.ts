import { setTimeout as delay } from 'node:timers/promises'
import { lists } from '../schema/index.js'
import { type DemoKeys, demoKeys } from './admin/demo-keys.js'
import { createLog, reasonOf } from './engines/observe/index.js'
import { openRateLimiter, parseRedisUrl, redisAddress } from './engines/rate-limit/index.js'
import { createApp } from './gateway/app.js'
import { assertIndexes, installationId, openDatabase } from './gateway/database/index.js'
import { listen } from './gateway/http/index.js'
import { version } from './project.js'
import { collectorOf, misspeltSettings, readSettings } from './settings.js'

/** How long closing may take once no request is in flight, which takes 10 seconds at most (see gateway/http/server.ts). */
const CLOSE_MS = 1_700

/** Where the counters are, without passwords. */
function countersName(redisUrl: string | undefined, prefix: string | undefined): string {
  if (!redisUrl) return 'in memory: they start at zero with each process (set REDIS_URL to keep and share them)'
  return `in Redis at ${redisAddress(parseRedisUrl(redisUrl))}, as ${prefix}:…`
}

/**
 * Starts the gateway. The process ends with 1 if that fails. The function that it returns ends the process with 0, even
 * if something hangs; called again, it does nothing.
 */
export function start(): (reason: string) => void {
  // Closes everything that was opened, the last first.
  const closers: (() => unknown)[] = []
  let stopServing = async () => {}
  // Until the settings say how much to log.
  let log = createLog('silent')
  let ending = false
  async function end(code: number): Promise<void> {
    if (ending) return
    ending = true
    await stopServing()
    // A database that hangs cannot be closed. The embedded one survives that, as it survives kill -9.
    setTimeout(() => process.exit(code), CLOSE_MS)
    try {
      for (const close of closers.reverse()) await close()
    } finally {
      process.exit(code)
    }
  }

  async function open(): Promise<void> {
    const settings = readSettings()
    log = createLog(settings.LOG_LEVEL)
    for (const warning of misspeltSettings()) log.warn(warning)
    const collector = collectorOf(settings)
    // Loaded only if it is needed, like Redis. It is closed last, because a collector that is away takes its time.
    if (collector) closers.push((await import('./engines/observe/sdk.js')).openTelemetry(collector, log))
    let demo = undefined as DemoKeys | undefined
    const database = await openDatabase(settings, {
      log,
      async prepare(opened) {
        demo = await demoKeys(opened, settings.DATA_DIR)
      },
      onNotice: (message) => log.warn(message),
      onLost: (error) => {
        log.fatal({ err: error }, 'the database is lost')
        void end(1)
      },
    })
    closers.push(() => database.close())
    await assertIndexes(lists, database)
    const { REDIS_URL: redisUrl } = settings
    const keyPrefix = redisUrl && `petstore:${await installationId(settings, database.prisma)}`
    const rateLimiter = await openRateLimiter({
      redisUrl,
      keyPrefix,
      banAfter: settings.BAN_AFTER,
      banSeconds: settings.BAN_SECONDS,
      log,
    })
    closers.push(() => rateLimiter.close())

    const app = createApp({ settings, database, rateLimiter, log })
    closers.push(() => app.close())
    const { PORT, ADMIN_PORT, HOST } = settings
    const server = await listen(app, { port: PORT, host: HOST })
    stopServing = async () => {
      app.drain()
      await delay(settings.DRAIN_SECONDS * 1000)
      await server.close()
    }
    if (ADMIN_PORT) {
      const admin = await listen(app.admin, { port: ADMIN_PORT, host: HOST, setting: 'ADMIN_PORT' })
      // Closed after the server: probes and metrics are answered for as long as requests are.
      closers.push(() => admin.close())
    }

    const base = settings.BASE_URL
    const lines = [`Pet Store ${version} at ${base}`, `  reference  ${base}/docs`, `  GraphiQL   ${base}/graphql`]
    lines.push(`  database   ${database.name}`, `  counters   ${countersName(redisUrl, keyPrefix)}`)
    if (collector) lines.push(`  spans      to ${new URL(collector.url).host}`)
    if (demo) lines.push('', 'Try it:', '', `curl -H "Authorization: Bearer ${demo.Free}" "${base}/pets?limit=3"`)
    else if ((await database.prisma.apiKey.count()) === 0)
      lines.push('', 'There are no keys yet. Create the first one: npm run keys -- create --name NAME --plan Free')
    process.stdout.write(`${lines.join('\n')}\n`)
  }

  open().catch((error) => {
    // A stop closes what this start uses, so the start fails.
    if (ending) return
    process.stderr.write(`${reasonOf(error)}\n`)
    return end(1)
  })
  return (reason) => {
    if (!ending) log.info({ reason }, 'stopping')
    void end(0)
  }
}
