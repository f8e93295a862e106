import { spawnSync } from 'node:child_process'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as wait } from 'node:timers/promises'
import { afterAll, beforeAll, describe, expect, it } from 'vitest'
import { createLog } from '../../src/engines/observe/log.js'
import { openRateLimiter, type Subject } from '../../src/engines/rate-limit/index.js'
import { freePort } from '../support/ports.js'
import { RedisServer, redisBinary } from '../support/redis.js'

const SECRET = 's3cret'
const subject: Subject = { id: 'key:1', windows: [{ name: 'minute', limit: 5, seconds: 60 }], bannable: true }
const openssl = spawnSync('openssl', ['version']).status === 0

describe.runIf(redisBinary)('a REDIS_URL that leads elsewhere', () => {
  let home = ''
  let plain: RedisServer
  let sentinel: RedisServer
  beforeAll(async () => {
    home = await mkdtemp(join(tmpdir(), 'redis-elsewhere-'))
    plain = await RedisServer.reserve()
    await plain.start()
    const file = join(home, 's.conf')
    await writeFile(file, `sentinel monitor pets 127.0.0.1 ${plain.port} 1`)
    sentinel = new RedisServer(await freePort(), [file, '--sentinel'])
    await sentinel.start()
  })
  afterAll(async () => {
    RedisServer.killAll()
    await rm(home, { recursive: true })
  })

  /** The one line of the log. */
  async function told(redisUrl: string) {
    const lines: string[] = []
    const log = createLog('info', { write: (line) => void lines.push(line) })
    const limits = await openRateLimiter({ redisUrl, log, banAfter: 10, banSeconds: 300, redisTimeoutMs: 5_000 })
    for (let i = 0; i < 6; i++) expect((await limits.consume(subject, 1)).outcome).toBe(i < 5 ? 'allowed' : 'limited')
    await wait(1_500)
    expect(limits.state).toBe('degraded')
    await limits.close()
    expect(lines).toHaveLength(1)
    expect(lines[0]).not.toContain(SECRET)
    return JSON.parse(lines[0] as string).err.message as string
  }

  it.concurrent.each<[string, () => string, () => string]>([
    [
      'a database that does not exist',
      () => `redis://127.0.0.1:${plain.port}/99`,
      () =>
        `REDIS_URL (127.0.0.1:${plain.port}, database 99): ERR DB index is out of range; name a database below "databases" of this Redis, by default 0 to 15`,
    ],
    [
      'such a database behind Sentinels',
      () => `redis+sentinel://127.0.0.1:${sentinel.port}/pets/99`,
      () =>
        `REDIS_URL (pets, by the Sentinels 127.0.0.1:${sentinel.port}, database 99): ERR DB index is out of range; name a database below "databases" of this Redis, by default 0 to 15`,
    ],
    [
      'a wrong login',
      () => `redis://ann:${SECRET}@127.0.0.1:${plain.port}`,
      () => `REDIS_URL (127.0.0.1:${plain.port}): WRONGPASS invalid username-password pair or user is disabled.`,
    ],
    [
      'TLS to a plain port',
      () => `rediss://127.0.0.1:${plain.port}`,
      () => `REDIS_URL (127.0.0.1:${plain.port}): connect ETIMEDOUT; if its port does not speak TLS, use redis://`,
    ],
    [
      'a name that the Sentinels do not know',
      () => `redis+sentinel://127.0.0.1:${sentinel.port}/dogs`,
      () => `REDIS_URL (dogs, by the Sentinels 127.0.0.1:${sentinel.port}): ERR No such master with that name`,
    ],
    [
      'a Redis instead of a Sentinel',
      () => `redis+sentinel://127.0.0.1:${plain.port}/pets`,
      () => "ERR unknown command 'sentinel'; this is no Sentinel: use redis://",
    ],
    [
      'a Sentinel instead of a Redis',
      () => `redis://127.0.0.1:${sentinel.port}`,
      () => '; a Sentinel needs redis+sentinel://host,host/name',
    ],
    [
      'servers that are no cluster',
      () => `redis://127.0.0.1:${plain.port},redis://localhost:${plain.port}`,
      () => 'ERR This instance has cluster support disabled; these servers are no cluster: name one of them',
    ],
  ])('%s is degraded, told in one line without secrets, and counted nowhere else', async (_, url, line) => {
    expect(await told(url())).toContain(line())
    expect(await plain.cli('keys', '*')).toBe('')
  })

  it.runIf(openssl)('without TLS to a port with TLS: the same', async () => {
    const [certificate, key, port] = [join(home, 'crt'), join(home, 'key'), await freePort()]
    const request = `req -x509 -newkey rsa:2048 -nodes -days 1 -subj /CN=localhost -keyout ${key} -out ${certificate}`
    spawnSync('openssl', request.split(' '))
    const files = `--tls-port ${port} --tls-cert-file ${certificate} --tls-key-file ${key} --tls-auth-clients no`
    await (await RedisServer.reserve(...files.split(' '))).start()
    expect(await told(`redis://127.0.0.1:${port}`)).toMatch(
      new RegExp(`^REDIS_URL .127.0.0.1:${port}.: .*; if its port speaks TLS, use rediss://$`),
    )
  })
})
