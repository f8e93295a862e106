import { readFileSync } from 'node:fs'
import autocannon from 'autocannon'
import type { Load, LoadResult } from './load.js'
import { choose, draw, fill, headersFor } from './requests.js'

// The loader where wrk is not installed. It needs more processor time for each request than wrk, which it takes from
// the servers on a small machine.

const load: Load = JSON.parse(readFileSync(process.argv[2] as string, 'utf8'))
const result = await autocannon({
  url: load.url,
  connections: load.connections,
  duration: load.seconds,
  requests: [
    {
      setupRequest: (request) => {
        const { isIdempotent, ...filled } = fill(choose(load.templates), draw(load.maxima))
        const key = load.keys[Math.floor(Math.random() * load.keys.length)] as string
        return { ...request, ...filled, headers: headersFor(key, filled.body, isIdempotent) } as autocannon.Request
      },
    },
  ],
})
const answered: LoadResult = {
  requests: result['2xx'] + result.non2xx,
  seconds: result.duration,
  bytes: result.throughput.total,
  p50: result.latency.p50,
  p99: result.latency.p99,
  failed: result.non2xx + result.errors,
}
process.stdout.write(`RESULT ${JSON.stringify(answered)}\n`)
