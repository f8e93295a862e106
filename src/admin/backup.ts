import { Command } from 'commander'
import { reasonOf } from '../engines/observe/index.js'
import { backUp, restore, STREAM, type Summary } from '../gateway/database/index.js'
import { readSettings } from '../settings.js'
import { StartupError } from '../startup-error.js'

// `npm run backup` and `npm run restore`: for the embedded database, whether the service runs or not.

function dataDirectory(): string {
  const { DATABASE_URL, DATA_DIR } = readSettings()
  if (DATABASE_URL)
    throw new StartupError(
      'DATABASE_URL is set, and this command is for the embedded database; for PostgreSQL use pg_dump and pg_restore, see docs/operators.md',
    )
  return DATA_DIR
}

/** With a backup on standard output, nothing else may be on it. */
const sayFor = (file: string) => (message: string) =>
  void (file === STREAM ? process.stderr : process.stdout).write(`${message}\n`)
const rows = ({ rows: { _prisma_migrations, Installation, ...tables } }: Summary) =>
  Object.entries(tables)
    .map(([table, count]) => `${table}: ${count}`)
    .join(', ')

const program = new Command('backup').description('Backs up and restores the embedded database in DATA_DIR.')
program
  .command('create <file>')
  .description('write a backup into a new file, or to standard output: -')
  .action(async (file: string) => {
    const dataDir = dataDirectory()
    const summary = await backUp(dataDir, file, (message) => void process.stderr.write(`${message}\n`))
    sayFor(file)(
      `Wrote ${file === STREAM ? 'a backup' : file} from ${dataDir} (${rows(summary)}). Keep it as safe as ${dataDir}: it has all keys' hashes and owners${summary.demoKeys ? ' and the demo keys' : ''}.`,
    )
  })
program
  .command('restore <file>')
  .description('restore a backup, from standard input with -, into DATA_DIR, which must be empty or not exist')
  .option('--same-installation', 'go on with the quotas and bans that Redis has of the installation that was backed up')
  .action(async (file: string, { sameInstallation }: { sameInstallation?: boolean }) => {
    const dataDir = dataDirectory()
    const summary = await restore(file, dataDir, sameInstallation)
    sayFor(file)(
      `Restored what was backed up at ${summary.createdAt} (${rows(summary)}). Start the service with DATA_DIR=${dataDir}.`,
    )
  })

program.parseAsync().catch((error) => {
  process.stderr.write(`${reasonOf(error)}\n`)
  process.exitCode = 1
})
