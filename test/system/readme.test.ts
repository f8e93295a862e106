import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { seed } from '../../prisma/seed.js'
import { type Gateway, openGateway } from '../support/gateway.js'
import { codeBlocks, section } from '../support/markdown.js'
import { has, runPrograms } from '../support/programs.js'

describe('the tour of the README', () => {
  let gateway: Gateway
  beforeAll(async () => {
    gateway = await openGateway()
    await seed(gateway.prisma)
  })
  afterAll(() => gateway.close())

  test.skipIf(!has('Shell'))('returns what it shows, pasted as it is', async () => {
    const blocks = codeBlocks(section('README.md', 'A tour')).filter(({ code }) => !code.startsWith('export '))
    const { url } = await gateway.listen()
    const { key } = await gateway.createKey()
    const commands = blocks.filter(({ language }) => language === 'sh')
    const outputs = blocks.filter(({ language }) => language !== 'sh')
    expect(commands.length).toBeGreaterThan(3)
    expect(outputs).toHaveLength(commands.length)
    for (const [at, { code }] of commands.entries()) {
      const printed = await runPrograms('Shell', [code.replaceAll('http://localhost:3000', url)], { KEY: key })
      const [head, body = ''] = printed.includes('\r\n\r\n') ? printed.split('\r\n\r\n') : ['', printed]
      const [shownHead = '', shownBody = ''] = outputs[at]?.language === 'http' ? outputs[at].code.split('\n\n') : []
      expect(JSON.parse(body)).toEqual(JSON.parse(shownBody || (outputs[at]?.code ?? '')))
      // The reset is a time; all else is as shown.
      const lines = (text: string) =>
        text
          .toLowerCase()
          .replace(/(?<=reset: )\d+/, '…')
          .split(/\r?\n/)
      expect(lines(head ?? '')).toEqual(expect.arrayContaining(lines(shownHead)))
    }
  })
})
