import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { reasonOf } from '../engines/observe/index.js'
import { openDatabase } from '../gateway/database/index.js'
import { projectPath } from '../project.js'
import { readSettings } from '../settings.js'

// `npm run studio`: opens Prisma Studio on the configured database, whether the service runs or not.

async function studio() {
  const database = await openDatabase(readSettings(), {
    join: true,
    mustExist: true,
    onNotice: (message) => void process.stderr.write(`${message}\n`),
  })
  process.stderr.write(`Prisma Studio on the database: ${database.name}\n`)
  const prisma = createRequire(import.meta.url).resolve('prisma/build/index.js')
  const preload = ['--import', new URL('./studio-preload.js', import.meta.url).href]
  const child = spawn(process.execPath, [...preload, prisma, 'studio', ...process.argv.slice(2)], {
    stdio: 'inherit',
    cwd: projectPath(''),
    env: { ...process.env, DATABASE_URL: database.url, DIRECT_URL: '' },
  })
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => child.kill(signal))
  child.on('exit', async (code) => {
    await database.close()
    process.exit(code ?? 0)
  })
}

studio().catch((error) => {
  process.stderr.write(`${reasonOf(error)}\n`)
  process.exit(1)
})
