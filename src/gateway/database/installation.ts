import { randomBytes } from 'node:crypto'
import type { PrismaClient } from '../../../prisma/generated/client/client.js'
import { messageOf } from '../../engines/postgres/index.js'
import type { Settings } from '../../settings.js'
import { StartupError } from '../../startup-error.js'

/**
 * The id of an installation, by which its names in Redis differ from those of others: INSTALLATION_ID, or the one that is in its
 * database. That is made for the first who asks, so that neither a build nor a copy of an unused database has one.
 *
 * @throws StartupError if the database does not let it be read, or made if it is not there
 */
export async function installationId(
  { INSTALLATION_ID }: Pick<Settings, 'INSTALLATION_ID'>,
  { installation }: PrismaClient,
): Promise<string> {
  if (INSTALLATION_ID) return INSTALLATION_ID
  try {
    const found = await installation.findFirst()
    if (found) return found.id
    await installation.createMany({ data: { id: randomBytes(6).toString('hex') }, skipDuplicates: true })
    // Another one may have been first.
    return (await installation.findFirstOrThrow()).id
  } catch (error) {
    throw new StartupError(
      `the id of this installation can neither be read nor made: ${messageOf(error)}; a role needs SELECT and INSERT on "Installation", a standby a gateway on its primary first; or set INSTALLATION_ID`,
      { cause: error },
    )
  }
}
