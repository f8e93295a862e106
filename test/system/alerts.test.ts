import { spawnSync } from 'node:child_process'
import { describe, expect, test } from 'vitest'

describe.runIf(spawnSync('promtool', ['--version']).status === 0)('promtool', () => {
  test.each([
    ['accepts the rules', ['check', 'rules', 'docs/alerts.yml']],
    ['says that they fire when they must, and not otherwise', ['test', 'rules', 'test/fixtures/alerts.yml']],
  ])('%s', (_, args) => {
    const { status, stdout, stderr } = spawnSync('promtool', args, { encoding: 'utf8' })
    expect([status, stdout + stderr], stdout + stderr).toEqual([0, expect.not.stringContaining('FAILED')])
  })
})
