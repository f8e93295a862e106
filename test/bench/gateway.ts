import { createApp } from '../../src/app.js'
import { openDatabase } from '../../src/database/index.js'
import { endOfTurn } from '../../src/execute/turn.js'
import { listen } from '../../src/http/server.js'
import { createLog } from '../../src/log.js'
import { openRateLimiter, type RateLimiter } from '../../src/rate-limit/index.js'
import { readConfig } from '../../src/settings.js'

// The gateway as main.ts composes it; with LIMITS=none one that lets everybody in and counts nothing, against which the
// price of the limits is measured. Same code, same headers, same answers. With LIMITS=gathered it waits for the end of
// the turn all the same, as the limits do: what they cost is then seen without what they bring.

const gathers = process.env.LIMITS === 'gathered'
const none: RateLimiter = {
  consume: async ({ windows }) => {
    if (gathers) await endOfTurn()
    const now = Date.now()
    return {
      at: now,
      outcome: 'allowed',
      refusedBy: [],
      windows: windows.map(({ name, limit, seconds }) => ({
        name,
        limit,
        seconds,
        remaining: limit,
        resetAt: now + seconds * 1000,
      })),
    }
  },
  state: 'memory',
  close: async () => {},
}

const config = readConfig()
const log = createLog(config.LOG_LEVEL)
const { REDIS_URL: redisUrl, BAN_AFTER: banAfter, BAN_SECONDS: banSeconds } = config
const limits = process.env.LIMITS ? none : await openRateLimiter({ redisUrl, banAfter, banSeconds, log })
const database = await openDatabase(config)
await listen(createApp({ config, database, limits, log }), { port: config.PORT, host: config.HOST })
process.on('SIGTERM', () => process.exit(0))
