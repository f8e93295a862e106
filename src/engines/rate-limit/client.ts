import { Cluster, Redis, type RedisOptions } from 'ioredis'
import { type RedisTarget, redisAddress } from './url.js'

const backOff = (attempt: number) => Math.min(50 * 2 ** attempt, 1_000)

/** Connects to nothing yet. */
export function createClient(target: RedisTarget, kind = target.kind): Redis | Cluster {
  const { nodes, username, password, db, name, sentinelUsername, sentinelPassword } = target
  const tls = target.tls ? {} : undefined
  const node = {
    username,
    password,
    tls,
    // Nothing waits for a connection, and nothing is sent twice: what was not answered may have been counted.
    autoResendUnfulfilledCommands: false,
    maxRetriesPerRequest: 0,
    // These bound the handshake, and drop a connection that the network has silently lost.
    connectTimeout: 1_000,
    socketTimeout: 2_000,
  } satisfies RedisOptions
  if (kind === 'cluster') {
    const cluster = new Cluster(nodes, {
      // ioredis would retry these for longer than a request may wait.
      retryDelayOnFailover: 0,
      retryDelayOnClusterDown: 0,
      // While the keys of a slot move from node to node, which takes a few milliseconds.
      retryDelayOnTryAgain: 10,
      maxRedirections: 6,
      clusterRetryStrategy: backOff,
      lazyConnect: true,
      // A command for a node that is still connecting may wait as long as any other.
      enableOfflineQueue: true,
      // Certificates have names, not addresses.
      dnsLookup: (host, done) => done(null, host),
      redisOptions: node,
    })
    // ioredis would connect to a node only with the first command for it.
    return cluster.on('+node', (node: Redis) => node.connect().catch(() => {}))
  }
  const one = { ...node, db, lazyConnect: true, enableOfflineQueue: false, retryStrategy: backOff }
  if (kind === 'server') return new Redis({ ...one, ...nodes[0] })
  return new Redis({
    ...one,
    sentinels: nodes,
    name,
    sentinelUsername,
    sentinelPassword,
    sentinelTLS: tls,
    enableTLSForSentinelMode: target.tls,
    sentinelCommandTimeout: 1_000,
    sentinelRetryStrategy: backOff,
    // Sentinels tell of a new master also while the old one still answers.
    failoverDetector: true,
  })
}

/** Why Redis cannot be used, where, and what to do, in one line without secrets. */
export function explain(error: unknown, target: RedisTarget, wasReached: boolean): Error {
  const { message, code, command, lastNodeError } = error as Error & {
    code?: string
    command?: { name: string }
    lastNodeError?: Error
  }
  const all = lastNodeError?.message ?? message.replace(/^All sentinels are unreachable\..*Last error: /, '')
  // Redis repeats what it does not know, such as a whole script.
  const reason = all.replace(/, with args beginning with: .*/s, '')
  let fix = ''
  if (/^NOPERM|can't run this command/.test(reason)) fix = '; see “Rights of the Redis user” in docs/operators.md'
  else if (/cluster mode/.test(reason)) fix = '; a cluster has only database 0'
  else if (isSelect(command)) fix = `; name a database below "databases" of this Redis, by default 0 to 15`
  else if (/cluster support disabled/.test(reason)) fix = '; these servers are no cluster: name one of them'
  else if (/unknown command '(eval|cluster)'/i.test(reason)) fix = '; a Sentinel needs redis+sentinel://host,host/name'
  else if (/unknown command 'sentinel'/.test(reason)) fix = '; this is no Sentinel: use redis://'
  else if (!wasReached && target.tls && code === 'ETIMEDOUT') fix = '; if its port does not speak TLS, use redis://'
  else if (!wasReached && !target.tls && /ECONNRESET|EPIPE/.test(code ?? ''))
    fix = '; if its port speaks TLS, use rediss://'
  return new Error(`REDIS_URL (${redisAddress(target)}): ${reason}${fix}`)
}

/** The command that a failed reply belongs to: ioredis goes on in database 0 when the one asked for does not exist. */
export const isSelect = (command: { name: string } | undefined) => command?.name === 'select'
