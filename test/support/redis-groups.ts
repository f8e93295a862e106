import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from './ports.js'
import { RedisServer, run } from './redis.js'

const until = async (holds: () => Promise<boolean>) => {
  for (const end = Date.now() + 30_000; !(await holds().catch(() => false)); await sleep(50))
    if (Date.now() > end) throw new Error(`not within 30 seconds: ${holds}`)
}

/** A replica that has never been in step is not promoted. */
const AT_ONCE = ['--repl-diskless-sync-delay', '0']
const inStep = async (server: RedisServer, ...auth: string[]) =>
  !(await server.cli(...auth, 'info', 'replication')).includes('master_link_status:down')

/** Three masters, each with so many replicas; `close` kills them. */
export async function startCluster({ replicas = 0, nodeTimeoutMs = 500 } = {}) {
  const home = await mkdtemp(join(tmpdir(), 'redis-cluster-'))
  const nodes: RedisServer[] = []
  for (let i = 0; i < 3 * (1 + replicas); i++) {
    const own = ['--cluster-enabled', 'yes', '--cluster-config-file', `${i}.conf`, '--dir', home]
    own.push('--dbfilename', `${i}.rdb`, ...AT_ONCE)
    nodes.push(await RedisServer.reserve(...own, '--cluster-node-timeout', String(nodeTimeoutMs)))
    await nodes[i]?.start()
  }
  const addresses = nodes.map(({ port }) => `127.0.0.1:${port}`)
  await run('redis-cli', [
    ...['--cluster', 'create', ...addresses, '--cluster-yes'],
    ...['--cluster-replicas', String(replicas)],
  ])
  const isReady = async (node: RedisServer) =>
    (await inStep(node)) &&
    /cluster_state:ok/.test(await node.cli('cluster', 'info')) &&
    (await node.cli('cluster', 'nodes')).split(/\bslave /).length > 3 * replicas
  await until(async () => (await Promise.all(nodes.map(isReady))).every(Boolean))
  const close = async () => {
    for (const node of nodes) await node.kill()
    await rm(home, { recursive: true, force: true })
  }
  /** The master of a key, its id, and another master with its id. */
  const mastersFor = async (key: string) => {
    const slot = Number(await nodes[0]?.cli('cluster', 'keyslot', key))
    const masters = (await (nodes[0] as RedisServer).cli('cluster', 'nodes'))
      .split('\n')
      .map((line) => line.split(' '))
      .filter(([, , flags]) => flags?.includes('master'))
      .map(([id = '', address = '', , , , , , , range = '']) => ({
        id,
        node: nodes.find(({ port }) => address.startsWith(`127.0.0.1:${port}@`)) as RedisServer,
        range: range.split('-').map(Number),
      }))
    const owns = ({ range: [first = 0, last = 0] }: (typeof masters)[number]) => first <= slot && slot <= last
    const [own, other] = [masters.find(owns), masters.find((master) => !owns(master))]
    if (!own || !other) throw new Error('no master')
    return { slot, own, other }
  }
  return { nodes, urls: addresses.map((address) => `redis://${address}`), mastersFor, close }
}

/** A master with a replica, and three Sentinels that watch it as `pets`. */
export async function startSentinels(login?: { password: string; sentinelPassword: string }) {
  const home = await mkdtemp(join(tmpdir(), 'redis-sentinel-'))
  const own = ['--dir', home, ...AT_ONCE].concat(
    login ? ['--requirepass', login.password, '--masterauth', login.password] : [],
  )
  const master = await RedisServer.reserve(...own)
  await master.start()
  const replica = await RedisServer.reserve(
    ...own,
    '--dbfilename',
    'replica.rdb',
    '--replicaof',
    `127.0.0.1 ${master.port}`,
  )
  await replica.start()
  const sentinels: RedisServer[] = []
  for (let i = 0; i < 3; i++) {
    const file = join(home, `${i}.conf`)
    const lines = [
      `sentinel monitor pets 127.0.0.1 ${master.port} 2`,
      'sentinel down-after-milliseconds pets 1000',
      'sentinel failover-timeout pets 5000',
      ...(login
        ? [
            `sentinel auth-pass pets ${login.password}`,
            `requirepass ${login.sentinelPassword}`,
            `sentinel sentinel-pass ${login.sentinelPassword}`,
          ]
        : []),
    ]
    await writeFile(file, lines.join('\n'))
    sentinels.push(new RedisServer(await freePort(), [file, '--sentinel']))
    await sentinels[i]?.start()
  }
  const auth = login ? ['-a', login.sentinelPassword] : []
  await until(() => inStep(replica, ...(login ? ['-a', login.password] : [])))
  const knowsAll = async (sentinel: RedisServer) => {
    const told = await sentinel.cli(...auth, 'sentinel', 'master', 'pets')
    return /num-slaves\n1\n/.test(told) && /num-other-sentinels\n2\n/.test(told)
  }
  await until(async () => (await Promise.all(sentinels.map(knowsAll))).every(Boolean))
  const close = async () => {
    for (const server of [...sentinels, replica, master]) await server.kill()
    await rm(home, { recursive: true, force: true })
  }
  return { master, replica, sentinels, hosts: sentinels.map(({ port }) => `127.0.0.1:${port}`).join(), close }
}
