import { hash } from 'node:crypto'
import { PrismaPg } from '@prisma/adapter-pg'
import { PrismaClient } from '../../../../prisma/generated/client/client.js'

/**
 * Prisma with prepared statements, as the gateway has them, and the same pool of 10 connections.
 * Without names, PostgreSQL would parse and plan each query again.
 */
export function openPrisma() {
  const names = new Map<string, string>()
  const statementName = (sql: string) => {
    const known = names.get(sql)
    if (known !== undefined) return known
    // Lists of ids make a statement for each length: only the first thousand get a name.
    const name = names.size < 1000 ? hash('sha256', sql, 'hex').slice(0, 32) : ''
    if (name) names.set(sql, name)
    return name
  }
  const adapter = new PrismaPg(
    { connectionString: process.env.DATABASE_URL, max: 10 },
    { statementNameGenerator: ({ sql }) => statementName(sql) },
  )
  return new PrismaClient({ adapter })
}
