import { Argument, Command, CommanderError, Option } from 'commander'
import { Access } from '../../prisma/generated/client/client.js'
import { plans } from '../../schema/plans.js'
import { USAGE_DAYS } from '../auth/index.js'
import { openDatabase, PATIENT_MS } from '../database/index.js'
import { readSettings, StartupError } from '../settings.js'
import { choice, count, date, explain, label } from './arguments.js'
import { keyCommands } from './key-commands.js'
import { keyReports } from './key-reports.js'

// The command line that manages API keys. Every command prints a table, or JSON with --json.

export interface Terminal {
  /** Default: the environment of the process. */
  environment?: NodeJS.ProcessEnv
  out(text: string): void
  err(text: string): void
}

const DAY_SECONDS = 86_400

const actions = { ...keyCommands, ...keyReports }
const planNames = Object.keys(plans)
const accessNames = Object.values(Access)
// Commander passes a second argument, which is not the bound that `count` takes.
const number = (text: string) => count(text)

const withLimits = (command: Command) =>
  command
    .option('--minute-limit <n>', 'requests per minute (Enterprise)', number)
    .option('--day-limit <n>', 'requests per day (Enterprise)', number)

function createProgram({ environment, out, err }: Terminal) {
  const run =
    (name: string) =>
    async (...args: unknown[]) => {
      const command = args.at(-1) as Command
      const settings = readSettings(environment)
      const warn = (message: string) => err(`${message}\n`)
      const database = await openDatabase(settings, {
        join: true,
        // Only `create` may use a new database: the first key has to come from somewhere.
        mustExist: name !== 'create',
        timeoutMs: PATIENT_MS,
        onNotice: warn,
      })
      try {
        const options = command.opts()
        if (!options.json) warn(`Database: ${database.name}`)
        const printed = await actions[name]?.({ database, settings, options, warn }, ...command.processedArgs)
        out(printed ?? '')
      } finally {
        await database.close()
      }
    }

  const speaking = (command: Command) =>
    command.exitOverride().configureOutput({
      writeOut: out,
      writeErr: err,
      outputError: (message, write) => write(explain(command, message)),
    })
  const program = speaking(
    new Command('keys')
      .description('Manages API keys. <key> is the id or the prefix of a key.')
      .configureHelp({ showGlobalOptions: true }),
  )
  const command = (usage: string, description: string) =>
    speaking(program.command(usage))
      .description(description)
      .option('--json', 'print JSON, for programs')
      .action(run(usage.split(' ')[0] as string))

  withLimits(
    command('create', 'create a key and print it once')
      .requiredOption('--name <name>', 'the owner of the key', label)
      .addOption(
        new Option('--plan <plan>', `the plan: ${planNames.join(', ')}`)
          .argParser(choice(planNames))
          .makeOptionMandatory(),
      ),
  )
    .option('--access <access>', 'write, or read for a key that may only read', choice(accessNames), Access.write)
    .option('--expires <date>', 'when the key expires (default: never)', date)
  command('list', 'list all keys')
  command('show <key>', 'show a key, without its secret')
  command('revoke <key>', 'revoke a key permanently')
  command('rotate <key>', 'create a new key with the same plan, limits and access, and let the old one expire')
    .option('--grace <seconds>', 'how long the old key still works', number, DAY_SECONDS)
    .option('--expires <date>', 'when the new key expires (required if the old key has an expiry date)', date)
  withLimits(
    command('plan <key>', 'change the plan').addArgument(
      new Argument('<plan>', planNames.join(', ')).argParser(choice(planNames)),
    ),
  )
  command('access <key>', 'change whether the key may change data').addArgument(
    new Argument('<access>', accessNames.join(' or ')).argParser(choice(accessNames)),
  )
  command('ban <key>', 'ban a key').option('--for <seconds>', 'how long', number, DAY_SECONDS)
  command('unban <key>', 'lift a ban')
  command('usage [key]', 'show how much of its quota each key has used, or what it has used on each day').option(
    '--days <n>',
    `the last n days in UTC, today included (1 to ${USAGE_DAYS})`,
    (text) => count(text, USAGE_DAYS),
  )
  command('history [key]', 'show what happened to a key, or to all keys, and who changed it')
  return program
}

/** Runs one command, and returns its exit code. */
export async function runKeys(args: string[], terminal: Terminal): Promise<number> {
  try {
    await createProgram(terminal).parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    // Commander has printed the reason, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode
    terminal.err(`${error instanceof StartupError ? error.message : ((error as Error)?.stack ?? error)}\n`)
    return 1
  }
}
