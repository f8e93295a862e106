import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../prisma/generated/client/client.js'
import type { Database } from '../../src/database/index.js'

/** A second client for a database, also for statements of our own, and the SQL statements that it sends. */
export function watched({ url }: { url: string }) {
  const prisma = new PrismaClient({
    adapter: new PrismaPg({ connectionString: url }, { onPoolError: () => {}, onConnectionError: () => {} }),
    errorFormat: 'minimal',
    log: [{ emit: 'event', level: 'query' }],
  })
  const statements: string[] = []
  prisma.$on('query', ({ query }) => statements.push(query))
  const query: Database['query'] = (text, values) => prisma.$queryRawUnsafe(text, ...values)
  return { prisma, query, statements }
}
