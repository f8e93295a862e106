import { request } from 'node:http'
import { test } from 'vitest'
import { openGateway } from './support/gateway.js'

test('x', async () => {
  const g = await openGateway()
  const { port } = await g.listen()
  const send = (bytes: number, declared: boolean) =>
    new Promise((resolve) => {
      const req = request(
        {
          port,
          host: '127.0.0.1',
          method: 'POST',
          path: '/categories',
          headers: {
            authorization: `Bearer ${g.key}`,
            'content-type': 'application/json',
            ...(declared ? { 'content-length': bytes } : {}),
          },
        },
        (res) => {
          let t = ''
          res.on('data', (d) => (t += d))
          res.on('end', () => resolve([res.statusCode, t.slice(0, 80)]))
          res.on('error', (e) => resolve(['res', e.message]))
        },
      )
      req.on('error', (e) => resolve(e.message))
      const chunk = Buffer.alloc(65536, 32)
      let left = bytes
      const write = () => {
        while (left > 0) {
          const part = chunk.subarray(0, Math.min(left, 65536))
          left -= part.length
          if (!req.write(part)) {
            req.once('drain', write)
            return
          }
        }
        req.end()
      }
      write()
    })
  for (const bytes of [1048577, 2_000_000, 20_000_000, 100_000_000])
    for (const declared of [false, true])
      console.log(
        bytes,
        declared,
        JSON.stringify(await Promise.all([send(bytes, declared), send(bytes, declared), send(bytes, declared)])),
      )
  await g.close()
})
