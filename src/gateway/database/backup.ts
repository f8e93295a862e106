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
import { pipeline as connect, Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createGzip } from 'node:zlib'
import pg from 'pg'
import { Prisma } from '../../../prisma/generated/client/client.js'
import { hasDatabase, openEmbedded, optimizeWasmLater } from '../../engines/embedded/index.js'
import { migrate, readMigrations, withSession } from '../../engines/postgres/index.js'
import { StartupError } from '../../startup-error.js'

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

/** Instead of the name of a file: standard output for a backup, standard input for a restore. */
export const STREAM = '-'

const VERSION = 1
const BATCH = 1000
/** The embedded database receives a statement in time that grows with the square of its length. */
const BATCH_LENGTH = 1 << 18
const HISTORY = '_prisma_migrations'

const names = async (client: pg.Client, sql: string): Promise<string[]> =>
  (await client.query<{ name: string }>(sql)).rows.map(({ name }) => name)

const known = () => readMigrations().map(({ name }) => name)

/**
 * Writes a backup of the database in a data directory, whether a process uses it or not. Clients of a running service wait
 * while the rows are read.
 *
 * @param onNotice called with what the backup does not contain, and with what it waits for
 * @throws StartupError; there is no file then
 */
export async function backUp(dataDir: string, file: string, onNotice: (message: string) => void): Promise<Summary> {
  const isStream = file === STREAM
  if (isStream && process.stdout.isTTY)
    throw new StartupError('- is standard output, which is a terminal; redirect it to a file or into a pipe')
  if (!isStream && existsSync(file)) throw new StartupError(`${file} exists; choose another name`)
  if (
    !hasDatabase(dataDir) ||
    !existsSync(join(dataDir, 'db/PG_VERSION')) ||
    existsSync(join(dataDir, 'db.incomplete'))
  )
    throw new StartupError(`DATA_DIR ${dataDir} holds no database; set DATA_DIR to the folder of the service`)
  const draft = `${file}.new`
  const database = await openEmbedded({ dataDir, port: 0, join: true, onNotice })
  try {
    return await withSession({ connectionString: database.url }, async (client) => {
      await client.query('BEGIN ISOLATION LEVEL REPEATABLE READ, READ ONLY')
      const summary = await readSummary(client, dataDir)
      const tables = await restorable(client, summary.migrations, onNotice)
      const target = isStream ? process.stdout : createWriteStream(draft, { mode: 0o600 })
      await pipeline(Readable.from(lines(client, summary, tables)), createGzip(), target)
      if (!isStream) renameSync(draft, file)
      return summary
    })
  } catch (error) {
    if (!isStream) rmSync(draft, { force: true })
    const target = isStream ? 'standard output' : file
    throw new StartupError(`${target} cannot be written: ${(error as Error).message}`, { cause: error })
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
  const sql = 'SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema() ORDER BY 1'
  const all = await names(client, sql)
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

/** The complete lines of a backup. */
async function* linesOf(file: string): AsyncGenerator<string> {
  const input = file === STREAM ? process.stdin : createReadStream(file)
  // Its errors are those of the text too.
  const text = connect(input, createGunzip().setEncoding('utf8'), () => {})
  let rest = ''
  for await (const part of text) {
    const lines = (rest + part).split('\n')
    rest = lines.pop() ?? ''
    yield* lines
  }
}

function parseHeader(line: string | undefined, source: string): Header {
  if (line === undefined) throw new Error('it is incomplete')
  const header = JSON.parse(line) as Header
  if (header.format !== 'petstore-backup') throw new Error('it has no header')
  if (header.version !== VERSION) throw new Error('a newer version made it')
  const unknown = header.migrations.filter((name) => !known().includes(name))
  if (unknown.length > 0)
    throw new StartupError(
      `${source} is from a newer version, with the migrations ${unknown.join(', ')}; restore it with that version`,
    )
  return header
}

/** Opens a backup, which is read once, and reads its header. @throws StartupError if it cannot be restored */
export async function openBackup(file: string) {
  const source = file === STREAM ? 'standard input' : file
  const lines = linesOf(file)
  const refusing = (error: unknown): never => {
    if (error instanceof StartupError) throw error
    const { code, message } = error as NodeJS.ErrnoException
    const reason = /^E[A-Z]+$/.test(code ?? '') ? 'cannot be read' : 'is not a backup, or is damaged'
    throw new StartupError(`${source} ${reason}: ${message}`, { cause: error })
  }
  const readHeader = async () => parseHeader((await lines.next()).value, source)
  async function readRows(onRow: (table: string, row: string) => unknown): Promise<Footer> {
    const rows: Record<string, number> = {}
    let footer: Footer | undefined
    for await (const line of lines) {
      const [, table, row] = /^\[("(?:[^"\\]|\\.)*"),(.*)\]$/s.exec(line) ?? []
      if (table && row) {
        const name: string = JSON.parse(table)
        rows[name] = (rows[name] ?? 0) + 1
        await onRow(name, row)
      } else footer = JSON.parse(line)
    }
    if (!footer || Object.entries(footer.rows).some(([name, count]) => (rows[name] ?? 0) !== count))
      throw new Error('it is incomplete')
    return footer
  }
  return {
    header: await readHeader().catch(refusing),
    /** Reads what follows the header. @throws StartupError if it is incomplete, or if `onRow` throws */
    rows: (onRow: (table: string, row: string) => unknown) => readRows(onRow).catch(refusing),
    close: () => lines.return(undefined),
  }
}

/**
 * Restores a backup into a data directory that is empty or does not exist, and applies the migrations that it lacks.
 *
 * @param sameInstallation keeps the id by which quotas in Redis are those of the installation that was backed up
 * @throws StartupError; the data directory is as it was then
 */
export async function restore(file: string, dataDir: string, sameInstallation = false): Promise<Summary> {
  const { header, rows, close } = await openBackup(file)
  let footer!: Footer
  optimizeWasmLater()
  const fill = (url: string) =>
    withSession({ connectionString: url }, async (client) => {
      const had = readMigrations().filter(({ name }) => header.migrations.includes(name))
      await migrate(url, { migrations: had, isEmbedded: true })
      // Rows come back as they were, in any order: no trigger adds others, and foreign keys held when they were read.
      await client.query(`BEGIN; SET LOCAL session_replication_role = replica; DELETE FROM "${HISTORY}"`)
      let batch = ''
      let table = ''
      const flush = async () => {
        const name = pg.escapeIdentifier(table)
        const insert = `INSERT INTO ${name} SELECT * FROM json_populate_recordset(NULL::${name}, $1::json)`
        if (batch) await client.query(insert, [`[${batch}]`])
        batch = ''
      }
      footer = await rows(async (name, row) => {
        if (name !== table || batch.length > BATCH_LENGTH) await flush()
        table = name
        batch += batch ? `,${row}` : row
      })
      await flush()
      for (const sequence of footer.sequences)
        await client.query('SELECT setval(quote_ident($1)::regclass, $2::bigint, $3)', sequence)
      await client.query('COMMIT')
      await migrate(url, { isEmbedded: true })
      if (!sameInstallation) await client.query('DELETE FROM "Installation"')
      if (header.demoKeys) writeFileSync(join(dataDir, 'demo-keys.json'), header.demoKeys, { mode: 0o600 })
    })
  try {
    await (await openEmbedded({ dataDir, port: 0, fill })).close()
  } finally {
    await close()
  }
  return { ...header, ...footer }
}
