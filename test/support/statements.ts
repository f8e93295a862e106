import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../prisma/generated/client/client.js'
import type { Query } from '../../src/engines/postgres/index.js'
import type { Database } from '../../src/gateway/database/index.js'
import { openTestDatabase } from './database.js'

/** A database whose SQL statements are recorded; those of Prisma come from a second client. */
export function watched({ url, query, transaction }: Pick<Database, 'url' | 'query' | 'transaction'>) {
  const prisma = new PrismaClient({
    adapter: new PrismaPg({ connectionString: url }, { onPoolError: () => {}, onConnectionError: () => {} }),
    errorFormat: 'minimal',
    log: [{ emit: 'event', level: 'query' }],
  })
  const statements: string[] = []
  prisma.$on('query', ({ query }) => statements.push(query))
  const recorded =
    (query: Query): Query =>
    (statement, values) => {
      statements.push(statement.text)
      return query(statement, values)
    }
  const recordedTransaction: Database['transaction'] = (work, options) =>
    transaction((query, undo) => work(recorded(query), undo), options)
  return { prisma, query: recorded(query), transaction: recordedTransaction, statements }
}

/** A test database whose statements are recorded. */
export async function openWatchedDatabase() {
  const database = await openTestDatabase()
  const watching = watched(database)
  const close = () => watching.prisma.$disconnect().then(() => database.close())
  return { ...database, ...watching, close }
}
