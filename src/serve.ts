import { setTimeout as delay } from 'node:timers/promises'
import { lists } from '../schema/index.js'
import { type DemoKeys, demoKeys } from './admin/demo-keys.js'
import type { Member } from './engines/cluster/index.js'
import type { Logger } from './engines/observe/index.js'
import type { Statement } from './engines/postgres/index.js'
import { openRateLimiter, parseRedisUrl, redisAddress } from './engines/rate-limit/index.js'
import { createApp } from './gateway/app.js'
import { assertIndexes, installationId, openDatabase } from './gateway/database/index.js'
import { listen } from './gateway/http/index.js'
import { version } from './project.js'
import { collectorOf, type Settings } from './settings.js'

const ANY_KEY: Statement = { kind: 'SELECT', tables: ['ApiKey'], text: 'SELECT FROM "public"."ApiKey" LIMIT 1' }

/** Where the counters are, without passwords. */
function countersName(redisUrl: string | undefined, prefix: string | undefined): string {
  if (!redisUrl) return 'in memory: they start at zero with each process (set REDIS_URL to keep and share them)'
  return `in Redis at ${redisAddress(parseRedisUrl(redisUrl))}, as ${prefix}:…`
}

export interface Process {
  log: Logger
  member: Member
  /** Closes what was opened, the last first, once no request is in flight. */
  closers: (() => unknown)[]
  /** Called with what stops serving: it resolves when no request is in flight. */
  onServing(stop: () => Promise<void>): void
  /** Called if the process cannot continue. */
  onLost(): void
}

/** Opens all that a gateway needs, in order, and serves. Returns what the start prints. */
export async function serve(settings: Settings, process: Process): Promise<string> {
  const { log, member, closers } = process
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
      process.onLost()
    },
  })
  closers.push(() => database.close())
  await assertIndexes(lists, database)
  const { REDIS_URL: redisUrl } = settings
  const keyPrefix = redisUrl && `petstore:${await installationId(settings, database.query)}`
  const rateLimiter = await openRateLimiter({
    redisUrl,
    keyPrefix,
    banAfter: settings.BAN_AFTER,
    banSeconds: settings.BAN_SECONDS,
    log,
  })
  closers.push(() => rateLimiter.close())

  const app = createApp({ settings, database, rateLimiter, log, member })
  closers.push(() => app.close())
  const { PORT, ADMIN_PORT, HOST, GATEWAYS } = settings
  const server = await listen(app, { port: PORT, host: HOST })
  process.onServing(async () => {
    app.drain()
    await delay(settings.DRAIN_SECONDS * 1000)
    await server.close()
  })
  if (ADMIN_PORT) {
    const admin = await listen(app.admin, { port: ADMIN_PORT, host: HOST, setting: 'ADMIN_PORT' })
    // Closed after the server: probes and metrics are answered for as long as requests are.
    closers.push(() => admin.close())
  }

  const base = settings.BASE_URL
  const lines = [`Pet Store ${version} at ${base}`, `  reference  ${base}/docs`, `  GraphiQL   ${base}/graphql`]
  lines.push(`  database   ${database.name}`, `  counters   ${countersName(redisUrl, keyPrefix)}`)
  if (GATEWAYS > 1) lines.push(`  processes  ${GATEWAYS}`)
  if (collector) lines.push(`  spans      to ${new URL(collector.url).host}`)
  if (demo) lines.push('', 'Try it:', '', `curl -H "Authorization: Bearer ${demo.Free}" "${base}/pets?limit=3"`)
  else if ((await database.query(ANY_KEY, [])).length === 0)
    lines.push('', 'There are no keys yet. Create the first one: npm run keys -- create --name NAME --plan Free')
  return `${lines.join('\n')}\n`
}
