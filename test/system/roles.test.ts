import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { describe, expect, onTestFinished, test } from 'vitest'
import { openDatabase } from '../../src/gateway/database/index.js'
import { readSettings } from '../../src/settings.js'
import { refusal } from '../support/database.js'
import { everyOperation } from '../support/every-operation.js'
import { asAdmin, queryOnce, scratchDatabase, testDatabaseUrl } from '../support/postgres.js'
import { createKey, openLocal, runKeys } from '../support/remote.js'

/** The statements of docs/operators.md that give a role its rights. */
const [, grants = ''] =
  /```sql\nCREATE ROLE gateway.*\n([\s\S]*?)```/.exec(readFileSync('docs/operators.md', 'utf8')) ?? []

/** A database whose tables belong to another role; returns the URLs of both roles. */
async function ownedByAnother() {
  const role = `petstore_role_${randomUUID().slice(0, 8)}`
  await asAdmin(`CREATE ROLE ${role} LOGIN`)
  onTestFinished(async () => void (await asAdmin(`DROP ROLE ${role}`)))
  const owner = await scratchDatabase()
  const url = Object.assign(new URL(owner), { username: role }).href
  const grant = (sql: string) => queryOnce(owner, sql.replaceAll(/\bgateway\b/g, role))
  await createKey({ DATABASE_URL: owner })
  return { owner, url, grant }
}

describe.runIf(testDatabaseUrl)('a role that does not own the tables', () => {
  test('can do everything with the rights that docs/operators.md gives it, and migrations by DIRECT_URL', async () => {
    const { owner, url, grant } = await ownedByAnother()
    expect(grants.match(/GRANT/g)).toHaveLength(5)
    await grant(grants)
    const { call, errors, stop } = await openLocal({ DATABASE_URL: url, DIRECT_URL: owner })
    expect(await everyOperation(call, 1)).toEqual([])
    await stop()
    expect(errors()).toBe('')
  })

  test('without rights on sequences or tables gets one line that says which, and where to read on', async () => {
    const { url, grant } = await ownedByAnother()
    const denied = (what: string) =>
      new RegExp(
        `^DATABASE_URL: the database .* cannot be used: permission denied for ${what}; see .Rights of the role.`,
        'm',
      )
    expect(await refusal(openDatabase(readSettings({ DATABASE_URL: url })))).toMatch(denied('table _prisma_migrations'))
    await grant(grants.replaceAll(/.*SEQUENCES.*/g, ''))
    const { code, stderr } = await runKeys({ DATABASE_URL: url }, 'create', '--name', 'Ann', '--plan', 'Free')
    expect(code).toBe(1)
    expect(stderr).toMatch(denied('sequence ApiKey_id_seq'))
    expect(stderr).not.toMatch(/^\s+at /m)
  })
})
