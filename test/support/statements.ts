import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../prisma/generated/client/client.js'

/** A second client for a database, and the SQL statements that it sends. */
export function watched({ url }: { url: string }) {
  const prisma = new PrismaClient({
    adapter: new PrismaPg({ connectionString: url }, { onPoolError: () => {}, onConnectionError: () => {} }),
    errorFormat: 'minimal',
    log: [{ emit: 'event', level: 'query' }],
  })
  const statements: string[] = []
  prisma.$on('query', ({ query }) => statements.push(query))
  return { prisma, statements }
}
