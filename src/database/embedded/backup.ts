import {
  createReadStream,
  createWriteStream,
  existsSync,
  readFileSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { join } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import pg from 'pg'
import { Prisma } from '../../../prisma/generated/client/client.js'
import { StartupError } from '../../startup-error.js'
import { readMigrations } from '../history.js'
import { migrate } from '../migrations.js'
import { withSession } from '../session.js'
import { openEmbedded } from './open.js'

// Backups of the embedded database: gzip of JSON lines. The first line is the header, the last one the footer, and each
// line between them is a row as PostgreSQL's row_to_json writes it, with its table: ["Pet",{"id":1,…}]. Rows never pass
// through JavaScript's numbers or dates, so they come back exactly. The schema is not in the file: the restore applies the
// migrations that the database had, so a backup does not depend on the version of the embedded PostgreSQL.

interface Header {
  format: 'petstore-backup'
  version: number
  createdAt: string
  migrations: string[]
  demoKeys?: string
}

interface Footer {
  rows: Record<string, number>
  sequences: [name: string, value: string, called: boolean][]
}

export type Summary = Header & Footer

const VERSION = 1
const BATCH = 1000
const HISTORY = '_prisma_migrations'

const names = async (client: pg.Client, sql: string): Promise<string[]> =>
  (await client.query<{ name: string }>(sql)).rows.map(({ name }) => name)

const known = () => readMigrations().map(({ name }) => name)

/**
 * Writes a backup of the database in a data directory, whether a process uses it or not. Clients of a running service wait
 * while the rows are read.
 *
 * @param onNotice called with what the backup does not contain
 * @throws StartupError; there is no file then
 */
export async function backUp(dataDir: string, file: string, onNotice: (message: string) => void): Promise<Summary> {
  if (existsSync(file)) throw new StartupError(`${file} exists; choose another name`)
  if (!existsSync(join(dataDir, 'db/PG_VERSION')) || existsSync(join(dataDir, 'db.incomplete')))
    throw new StartupError(`DATA_DIR ${dataDir} holds no database; set DATA_DIR to the folder of the service`)
  const draft = `${file}.new`
  const database = await openEmbedded({ dataDir, port: 0, join: true })
  try {
    return await withSession({ connectionString: database.url }, async (client) => {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY')
      const summary = await readSummary(client, dataDir)
      const tables = await restorable(client, summary.migrations, onNotice)
      await pipeline(
        Readable.from(lines(client, summary, tables)),
        createGzip(),
        createWriteStream(draft, { mode: 0o600 }),
      )
      renameSync(draft, file)
      return summary
    })
  } catch (error) {
    rmSync(draft, { force: true })
    throw new StartupError(`${file} cannot be written: ${(error as Error).message}`, { cause: error })
  } finally {
    await database.close()
  }
}

async function readSummary(client: pg.Client, dataDir: string): Promise<Summary> {
  const demoKeys = join(dataDir, 'demo-keys.json')
  const sequences: Footer['sequences'] = []
  const sql = 'SELECT sequencename AS name FROM pg_sequences WHERE schemaname = current_schema() ORDER BY 1'
  for (const name of await names(client, sql)) {
    const { rows } = await client.query(`SELECT last_value, is_called FROM ${pg.escapeIdentifier(name)}`)
    sequences.push([name, rows[0].last_value, rows[0].is_called])
  }
  return {
    format: 'petstore-backup',
    version: VERSION,
    createdAt: new Date().toISOString(),
    migrations: await names(
      client,
      `SELECT "migration_name" AS name FROM "${HISTORY}" WHERE "finished_at" IS NOT NULL AND "rolled_back_at" IS NULL`,
    ),
    demoKeys: existsSync(demoKeys) ? readFileSync(demoKeys, 'utf8') : undefined,
    sequences,
    rows: {},
  }
}

/** The tables that migrations create: a restore can make no others. All tables, if a newer version has migrated. */
async function restorable(client: pg.Client, migrations: string[], onNotice: (message: string) => void) {
  const all = await names(
    client,
    'SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1',
  )
  if (migrations.some((name) => !known().includes(name))) return all
  const ours = [...Object.keys(Prisma.ModelName), HISTORY]
  for (const name of all)
    if (!ours.includes(name))
      onNotice(`the table ${JSON.stringify(name)} is not in the backup, because no migration creates it`)
  return all.filter((name) => ours.includes(name))
}

async function* lines(client: pg.Client, { rows, sequences, ...header }: Summary, tables: string[]) {
  yield `${JSON.stringify(header)}\n`
  for (const table of tables) {
    rows[table] = 0
    await client.query(
      `DECLARE backup CURSOR FOR SELECT row_to_json(t)::text AS row FROM ${pg.escapeIdentifier(table)} t`,
    )
    for (;;) {
      const batch = await client.query<{ row: string }>(`FETCH ${BATCH} FROM backup`)
      if (batch.rows.length === 0) break
      rows[table] += batch.rows.length
      yield batch.rows.map(({ row }) => `[${JSON.stringify(table)},${row}]\n`).join('')
    }
    await client.query('CLOSE backup')
  }
  yield `${JSON.stringify({ rows, sequences } satisfies Footer)}\n`
}

/** Reads a whole backup. The rows go to `onRow` one by one. */
async function read(file: string, onRow: (table: string, row: string) => unknown): Promise<Summary> {
  const rows: Record<string, number> = {}
  let header: Header | undefined
  let footer: Footer | undefined
  async function take(line: string): Promise<void> {
    const [, table, row] = /^\[("(?:[^"\\]|\\.)*"),(.*)\]$/s.exec(line) ?? []
    if (!header) {
      header = JSON.parse(line) as Header
      if (header.format !== 'petstore-backup') throw new Error('it has no header')
      if (header.version !== VERSION) throw new Error('a newer version made it')
    } else if (table && row) {
      const name: string = JSON.parse(table)
      rows[name] = (rows[name] ?? 0) + 1
      await onRow(name, row)
    } else footer = JSON.parse(line)
  }
  try {
    await pipeline(createReadStream(file), createGunzip().setEncoding('utf8'), async (text: AsyncIterable<string>) => {
      let rest = ''
      for await (const part of text) {
        const lines = (rest + part).split('\n')
        rest = lines.pop() ?? ''
        for (const line of lines) await take(line)
      }
    })
    if (!header || !footer || Object.entries(footer.rows).some(([name, count]) => (rows[name] ?? 0) !== count))
      throw new Error('it is incomplete')
  } catch (error) {
    throw new StartupError(`${file} is not a backup, or is damaged: ${(error as Error).message}`, { cause: error })
  }
  return { ...header, ...footer }
}

/** Reads a whole backup without using it. @throws StartupError if it cannot be restored */
export async function inspect(file: string): Promise<Summary> {
  const summary = await read(file, () => {})
  const unknown = summary.migrations.filter((name) => !known().includes(name))
  if (unknown.length > 0)
    throw new StartupError(
      `${file} is from a newer version, with the migrations ${unknown.join(', ')}; restore it with that version`,
    )
  return summary
}

/**
 * Restores a backup into a data directory that is empty or does not exist, and applies the migrations that it lacks.
 *
 * @throws StartupError; the data directory is as it was then
 */
export async function restore(file: string, { migrations, demoKeys, sequences }: Summary, dataDir: string) {
  async function fill(url: string): Promise<void> {
    const known = readMigrations().filter(({ name }) => migrations.includes(name))
    await migrate(url, { migrations: known, isEmbedded: true })
    await withSession({ connectionString: url }, async (client) => {
      await client.query('BEGIN')
      // Rows come back as they were, in any order: no trigger adds others, and foreign keys held when they were read.
      await client.query('SET LOCAL session_replication_role = replica')
      await client.query(`DELETE FROM "${HISTORY}"`)
      let batch: string[] = []
      let table = ''
      const flush = async () => {
        const name = pg.escapeIdentifier(table)
        const insert = `INSERT INTO ${name} SELECT * FROM json_populate_recordset(NULL::${name}, $1::json)`
        if (batch.length > 0) await client.query(insert, [`[${batch.join(',')}]`])
        batch = []
      }
      await read(file, async (name, row) => {
        if (name !== table || batch.length === BATCH) await flush()
        table = name
        batch.push(row)
      })
      await flush()
      for (const sequence of sequences)
        await client.query('SELECT setval(quote_ident($1)::regclass, $2::bigint, $3)', sequence)
      await client.query('COMMIT')
    })
    await migrate(url, { isEmbedded: true })
    if (demoKeys) writeFileSync(join(dataDir, 'demo-keys.json'), demoKeys, { mode: 0o600 })
  }
  await (await openEmbedded({ dataDir, port: 0, fill })).close()
}
