/** What REDIS_URL says. */
export interface RedisTarget {
  /** One server may turn out to be a node of a cluster. */
  kind: 'server' | 'cluster' | 'sentinel'
  tls: boolean
  /** The server, the nodes of a cluster, or the Sentinels. */
  nodes: { host: string; port: number }[]
  username?: string
  password?: string
  db: number
  /** Of the master that the Sentinels watch. */
  name?: string
  sentinelUsername?: string
  sentinelPassword?: string
}

export const REDIS_URL_FORMS =
  'a redis:// or rediss:// URL, several separated by commas for a cluster, or redis+sentinel://host,host/name'

const PARTS = /^(rediss?)(?:\+sentinel)?:\/\/(?:(.*)@)?([^/?#@]+)([^?#]*)(?:\?([^#]*))?$/s

/** @throws Error that says, after "it must", what the URL must be or have; it contains no part of the login. */
export function parseRedisUrl(text: string): RedisTarget {
  if (/^rediss?\+sentinel:/.test(text)) return parse(text, 'sentinel', 26_379)
  const targets = text.split(',').map((url) => parse(url.trim(), 'server', 6379))
  const [first, ...more] = targets as [RedisTarget, ...RedisTarget[]]
  if (more.length === 0) return first
  for (const { tls, username, password } of more) {
    if (tls !== first.tls)
      throw new Error('have the same scheme in all its URLs: redis:// without TLS, rediss:// with it')
    if ((username || password) && (username !== first.username || password !== first.password))
      throw new Error('have one login for all nodes of the cluster, in its first URL')
  }
  if (targets.some(({ db }) => db > 0)) throw new Error('name no database: a cluster has only database 0')
  return { ...first, kind: 'cluster', nodes: targets.flatMap(({ nodes }) => nodes) }
}

function parse(url: string, kind: 'server' | 'sentinel', defaultPort: number): RedisTarget {
  const [, scheme, login, authority, path = '', query] = PARTS.exec(url) ?? []
  if (!scheme || !authority) throw new Error(`be ${REDIS_URL_FORMS}`)
  const nodes = authority.split(',').map((host) => {
    if (!URL.canParse(`redis://${host}`))
      throw new Error('have hosts such as redis.example.com, 10.0.0.1:6379 or [::1]')
    const { hostname, port } = new URL(`redis://${host}`)
    return { host: hostname.replace(/^\[|\]$/g, ''), port: port ? Number(port) : defaultPort }
  })
  const segments = path.split('/').slice(1)
  const name = kind === 'sentinel' ? decode(segments.shift()) : undefined
  if (kind === 'sentinel' && !name)
    throw new Error('name the master that the Sentinels watch: redis+sentinel://host,host/name')
  const [db = '', ...rest] = segments
  if (!/^\d{0,9}$/.test(db) || rest.length > 0)
    throw new Error(`end with the number of a database, such as ${name ? '/name/0' : '/0'}, or without one`)
  const parameters = new URLSearchParams(query)
  const known = kind === 'sentinel' ? ['sentinelUsername', 'sentinelPassword'] : []
  const unknown = [...parameters.keys()].find((parameter) => !known.includes(parameter))
  if (unknown)
    throw new Error(`have no parameter ${unknown}, but only ${known.join(' and ') || 'what is before the ?'}`)
  const [username, ...password] = (login ?? '').split(':')
  if (username && password.length === 0) throw new Error('have a password after its user: redis://:password@host')
  return {
    kind,
    tls: scheme === 'rediss',
    nodes,
    username: decode(username),
    password: decode(password.join(':')),
    db: Number(db),
    name,
    ...Object.fromEntries(parameters),
  }
}

function decode(text = ''): string | undefined {
  try {
    return decodeURIComponent(text) || undefined
  } catch {
    throw new Error('have its login and name percent-encoded: %25 for a %')
  }
}

/** Where it leads, without the login. */
export function redisAddress({ nodes, name, db }: RedisTarget): string {
  const hosts = nodes.map(({ host, port }) => `${host.includes(':') ? `[${host}]` : host}:${port}`).join(', ')
  return `${name ? `${name}, by the Sentinels ` : ''}${hosts}${db > 0 ? `, database ${db}` : ''}`
}
