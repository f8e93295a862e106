import { randomBytes } from 'node:crypto'
import type { Query, Statement } from '../../engines/postgres/index.js'
import type { Settings } from '../../settings.js'
import { StartupError } from '../../startup-error.js'

const tables = ['Installation']
const FIND: Statement = { kind: 'SELECT', tables, text: 'SELECT id FROM "public"."Installation"' }
const MAKE: Statement = {
  kind: 'INSERT',
  tables,
  text: 'INSERT INTO "public"."Installation" (id) VALUES ($1) ON CONFLICT DO NOTHING',
}

/**
 * The id of an installation, by which its names in Redis differ from those of others: INSTALLATION_ID, or the one that is in its
 * database. That is made for the first who asks, so that neither a build nor a copy of an unused database has one.
 *
 * @throws StartupError if the database does not let it be read, or made if it is not there
 */
export async function installationId(
  { INSTALLATION_ID }: Pick<Settings, 'INSTALLATION_ID'>,
  query: Query,
): Promise<string> {
  if (INSTALLATION_ID) return INSTALLATION_ID
  try {
    const find = async () => (await query(FIND, []))[0]?.id as string | undefined
    const found = await find()
    if (found) return found
    await query(MAKE, [randomBytes(6).toString('hex')])
    // Another one may have been first.
    return (await find()) ?? Promise.reject(new Error('it is not there after it was made'))
  } catch (error) {
    throw new StartupError(
      `the id of this installation can neither be read nor made: ${(error as Error).message}; a role needs SELECT and INSERT on "Installation", a standby a gateway on its primary first; or set INSTALLATION_ID`,
      { cause: error },
    )
  }
}
