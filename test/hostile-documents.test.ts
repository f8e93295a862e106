import { afterAll, expect, test } from 'vitest'
import { assertHealthy, messagesOf } from './lab/fuzz/fuzz.js'
import { documents, openTarget, requestOf } from './support/hostile-documents.js'

// `npm run fuzz` measures what each of them takes.

const gateway = await openTarget()
afterAll(() => gateway.close())

test.each(documents)('%s: the gateway answers, and logs no error', async (_, query, variables) => {
  const answer = await gateway.post('/graphql', requestOf(query, 0, variables))
  expect([200, 400]).toContain(answer.status)
  assertHealthy(gateway, [answer.status], answer.status === 400 ? messagesOf(answer) : [])
})
