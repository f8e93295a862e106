import { spawnSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { lists } from '../../../schema/index.js'
import { type ListIndex, missingIndexes, openDatabase } from '../../../src/gateway/database/index.js'
import { migrationsFrom } from './migration-sql.js'
import { diff } from './schema-engine.js'

// `npm run migration -- NAME`: writes the migrations that lead from those that are there to prisma/schema.prisma and the lists of
// schema/. It needs no server.

const SCHEMA = 'prisma/schema.prisma'
const MIGRATIONS = 'prisma/migrations'

const textKeys = lists.flatMap(({ model, textKeys = {} }) =>
  Object.entries(textKeys).map(([column, textKey]) => ({ model, column, textKey })),
)

const modelIn = (schema: string, model: string) => {
  const block = new RegExp(`^model ${model} \\{[\\s\\S]*?^\\}`, 'm').exec(schema)?.[0]
  if (!block) throw new Error(`${SCHEMA} has no model ${model}`)
  return block
}

/** The data model with the keys and indexes that lists need, and what was added to it. */
function complete(schema: string, missing: readonly ListIndex[]) {
  let completed = schema
  const added: string[] = []
  const change = (model: string, has: RegExp, line: string, place: RegExp, order: (found: string) => string) => {
    const block = modelIn(completed, model)
    if (has.test(block)) return
    completed = completed.replace(block, () => block.replace(place, order))
    added.push(`${SCHEMA}, model ${model}: ${line}\n`)
  }
  for (const { model, column, textKey } of textKeys) {
    const line = `${textKey} String @default("") @ignore`
    const place = new RegExp(`^ +${column} .*\n`, 'm')
    change(model, new RegExp(`^ +${textKey} `, 'm'), line, place, (found) => `${found}  ${line}\n`)
  }
  for (const { model, fields, columns } of missing) {
    // Prisma has no indexes by expression.
    if (columns.some((column) => column.startsWith('coalesce('))) continue
    const line = `@@index([${fields.join(', ')}])`
    const has = new RegExp(`@@(index|unique|id)\\(\\[${fields.join(', *')}\\]`)
    change(model, has, line, /^( +@@map\(|\})/m, (found) => `  ${line}\n${found}`)
  }
  return { completed, added }
}

/** Names of migrations, each after those that are there and those before it. */
function* timestamps(): Generator<string> {
  let last =
    readdirSync(MIGRATIONS)
      .map((name) => name.slice(0, 14))
      .filter((name) => /^\d{14}$/.test(name))
      .sort()
      .at(-1) ?? ''
  for (;;) {
    const now = new Date().toISOString().replaceAll(/\D/g, '').slice(0, 14)
    last = now > last ? now : String(BigInt(last) + 1n)
    yield last
  }
}

async function write(title: string | undefined): Promise<void> {
  if (!title || !/^[a-z][a-z\d_]*$/.test(title))
    throw new Error('Name the migration in lower case, digits and _: npm run migration -- customers')
  const dataDir = mkdtempSync(join(tmpdir(), 'petstore-migration-'))
  const database = await openDatabase({ DATA_DIR: dataDir, EMBEDDED_DB_PORT: 0 } as Parameters<typeof openDatabase>[0])
  try {
    const missing = await missingIndexes(lists, database)
    const schema = readFileSync(SCHEMA, 'utf8')
    const { completed, added } = complete(schema, missing)
    const { stdout } = await diff(database.url, completed)
    const migrations = migrationsFrom(title, stdout ?? '', missing, textKeys, database.tables)
    if (added.length > 0) writeFileSync(SCHEMA, completed)
    process.stdout.write(added.join(''))
    if (migrations.length === 0) process.stdout.write(`The migrations have all that ${SCHEMA} and the lists need.\n`)
    // In columns, as editors do.
    if (added.length > 0) spawnSync('prisma format', { shell: true })
    const times = timestamps()
    for (const { title, sql } of migrations) {
      const folder = join(MIGRATIONS, `${times.next().value}_${title}`)
      mkdirSync(folder)
      writeFileSync(join(folder, 'migration.sql'), sql)
      process.stdout.write(`${folder}/migration.sql\n`)
    }
  } finally {
    await database.close()
    rmSync(dataDir, { recursive: true, force: true })
  }
}

write(process.argv[2]).catch((error: Error) => {
  process.stderr.write(`${error.message}\n`)
  process.exitCode = 1
})
