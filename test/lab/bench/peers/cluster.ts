import cluster from 'node:cluster'

// A peer in several processes on one port, as the documentation of node:cluster shows it: cluster.js FILE COUNT

const [exec, count] = process.argv.slice(2)
cluster.setupPrimary({ exec })
for (let i = 0; i < Number(count); i++) cluster.fork()
process.on('SIGTERM', () => {
  for (const worker of Object.values(cluster.workers ?? {})) worker?.process.kill()
  cluster.disconnect(() => process.exit(0))
})
