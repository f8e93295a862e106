import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { PrismaPg } from '@prisma/adapter-pg'
import { bindMigrationAwareSqlAdapterFactory, ColumnTypeEnum, type SqlQuery } from '@prisma/driver-adapter-utils'
import pg from 'pg'
import { readMigrations } from '../../../src/engines/postgres/index.js'

// Asks Prisma's schema engine about a database. The WebAssembly build needs no download.

const require = createRequire(import.meta.url)
const CHAR = 18
const TEXT = 25

/** The adapter has no type for PostgreSQL's internal "char", which the catalog uses for kinds of constraints. */
async function connect(connectionString: string) {
  const pool = new pg.Pool({ connectionString, max: 1 })
  const query = pool.query.bind(pool) as unknown as (...args: unknown[]) => Promise<pg.QueryResult>
  const kinds = new Set<string>()
  Object.assign(pool, {
    query: async (...args: unknown[]) => {
      const result = await query(...args)
      for (const field of result.fields ?? []) {
        if (field.dataTypeID !== CHAR) continue
        field.dataTypeID = TEXT
        kinds.add(field.name)
      }
      return result
    },
  })
  const adapter = await new PrismaPg(pool, { disposeExternalPool: true }).connect()
  const queryRaw = adapter.queryRaw.bind(adapter)
  adapter.queryRaw = async (params: SqlQuery) => {
    const result = await queryRaw(params)
    const columnTypes = result.columnTypes.map((type, index) =>
      kinds.has(result.columnNames[index] ?? '') ? ColumnTypeEnum.Character : type,
    )
    return { ...result, columnTypes }
  }
  return adapter
}

let engine: Promise<typeof import('@prisma/schema-engine-wasm/schema_engine_bg')> | undefined

/** Loaded once per process, because a second instance would share the glue code of the first. */
function loadEngine() {
  engine ??= (async () => {
    const glue = await import('@prisma/schema-engine-wasm/schema_engine_bg')
    const wasm = readFileSync(join(dirname(require.resolve('@prisma/schema-engine-wasm')), 'schema_engine_bg.wasm'))
    const { instance } = await WebAssembly.instantiate(wasm, { './schema_engine_bg.js': glue })
    glue.__wbg_set_wasm(instance.exports)
    ;(instance.exports.__wbindgen_start as () => void)()
    return glue
  })()
  return engine
}

const PATH = 'prisma/schema.prisma'
const filters = { externalTables: [], externalEnums: [] }

async function openEngine(url: string, content: string) {
  const { SchemaEngine } = await loadEngine()
  return SchemaEngine.new(
    { datamodels: [[PATH, content]] },
    () => {},
    bindMigrationAwareSqlAdapterFactory({
      provider: 'postgres',
      adapterName: '@prisma/adapter-pg',
      connect: () => connect(url),
      connectToShadowDb: () => Promise.reject(new Error('no shadow database is needed here')),
    }),
  )
}

/** What `prisma migrate diff` says: the script that makes of a database what a data model says. */
export async function diff(url: string, content = readFileSync(PATH, 'utf8')) {
  const prisma = await openEngine(url, content)
  const schema = { path: PATH, content }
  return prisma.diff({
    from: { tag: 'schemaDatasource', files: [schema], configDir: '.' },
    to: { tag: 'schemaDatamodel', files: [schema] },
    script: true,
    exitCode: true,
    filters,
  })
}

/** What `prisma migrate status` says of a database. */
export async function readStatus(url: string) {
  const prisma = await openEngine(url, readFileSync(PATH, 'utf8'))
  return prisma.diagnoseMigrationHistory({
    migrationsList: {
      baseDir: 'prisma/migrations',
      lockfile: {
        path: 'migration_lock.toml',
        content: readFileSync('prisma/migrations/migration_lock.toml', 'utf8'),
      },
      shadowDbInitScript: '',
      migrationDirectories: readMigrations().map(({ name, sql }) => ({
        path: name,
        migrationFile: { path: 'migration.sql', content: { tag: 'ok', value: sql } },
      })),
    },
    optInToShadowDatabase: false,
    filters,
  })
}
