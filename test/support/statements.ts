import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../prisma/generated/client/client.js'

/** Another client of a database, with every SQL statement that it has sent. */
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
