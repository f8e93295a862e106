import { randomBytes } from 'node:crypto'
import type { PrismaClient } from '../../prisma/generated/client/client.js'
import type { Settings } from '../settings.js'
import { StartupError } from '../startup-error.js'
import { messageOf } from './pool/errors.js'

/**
 * The id of an installation, by which its names in Redis differ from those of others: INSTALLATION_ID, or the one that is in its
 * database. That is made for the first who asks, so that neither a build nor a copy of an unused database has one.
 *
 * @throws StartupError if nobody has asked before and the database cannot be written
 */
export async function installationId(
  { INSTALLATION_ID }: Pick<Settings, 'INSTALLATION_ID'>,
  { installation }: PrismaClient,
): Promise<string> {
  const known = INSTALLATION_ID ?? (await installation.findFirst())?.id
  if (known) return known
  const data = { id: randomBytes(6).toString('hex') }
  await installation.createMany({ data, skipDuplicates: true }).catch((error) => {
    throw new StartupError(
      `the database has no id of the installation yet and cannot be written (${messageOf(error)}); start a gateway on its primary first, or set INSTALLATION_ID`,
      { cause: error },
    )
  })
  // Another one may have been first.
  return (await installation.findFirstOrThrow()).id
}
