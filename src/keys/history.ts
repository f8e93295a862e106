import type { Prisma, PrismaClient } from '../../prisma/generated/client/client.js'

/** Writes keys in a transaction that says who it is: the history of keys shows all others as changes in the database. */
export const writeKeys = <T>(
  prisma: PrismaClient,
  source: 'command line' | 'gateway',
  write: (transaction: Prisma.TransactionClient) => Promise<T>,
): Promise<T> =>
  prisma.$transaction(async (transaction) => {
    await transaction.$executeRaw`SELECT set_config('petstore.source', ${source}, true)`
    return write(transaction)
  })
