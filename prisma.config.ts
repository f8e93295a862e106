import process from 'node:process'
import { defineConfig } from 'prisma/config'

// `generate` and `studio` never run the native schema engine, yet the command line wants one to
// exist before any command, and would download it. Any existing file satisfies it.
process.env.PRISMA_SCHEMA_ENGINE_BINARY ??= process.execPath
// Nor does a build ask whether there is a newer version.
process.env.CHECKPOINT_DISABLE ??= '1'

const url = process.env.DIRECT_URL || process.env.DATABASE_URL

export default defineConfig({
  schema: 'prisma/schema.prisma',
  migrations: { path: 'prisma/migrations' },
  ...(url ? { datasource: { url } } : {}),
})
