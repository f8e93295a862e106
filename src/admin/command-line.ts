import { Argument, Command, CommanderError, Option } from 'commander'
import { suggestionList } from 'graphql/jsutils/suggestionList.js'
import { Access } from '../../prisma/generated/client/client.js'
import { MAX_TEXT, MAX_USAGE_HOURS } from '../../schema/kit/input/rules.js'
import { plans } from '../../schema/kit/plans.js'
import { reasonOf } from '../engines/observe/index.js'
import { databaseError, isAway } from '../engines/postgres/index.js'
import { openDatabase, PATIENT_MS } from '../gateway/database/index.js'
import { USAGE_DAYS } from '../gateway/keys/index.js'
import { readSettings } from '../settings.js'
import { StartupError } from '../startup-error.js'
import { history } from './history-report.js'
import { type Action, keyCommands, limitsFor, type Options, type Printed } from './key-commands.js'
import { usage } from './usage-report.js'
import { address, choice, count, dateOrNever, label, orEmpty, type Read } from './values.js'

// The command line that manages API keys. Every command prints a table, or JSON with --json.

/**
 * Without `--` before it, npm takes an option for one of its own, and passes it as a variable. `email` is one of its own, which
 * may stand in its configuration.
 */
function takenByNpm({ options }: Command, args: string[], variables: NodeJS.ProcessEnv): string[] {
  if (variables.npm_lifecycle_event !== 'keys') return []
  return options.flatMap(({ long }) => {
    if (long === '--email') return []
    const value = variables[`npm_config_${long?.slice(2).replaceAll('-', '_')}`]
    const isGiven = args.some((arg) => arg === long || arg.startsWith(`${long}=`))
    return long && value !== undefined && !isGiven && !OF_NPM.test(value) ? long : []
  })
}
/** Values of `access`, which npm has, too. */
const OF_NPM = /^(public|restricted|)$/

/** An option that the command does not have, and the one that could be meant. */
function unknownOption({ options }: Command, args: string[]): string | undefined {
  const known = options.flatMap(({ long }) => long ?? [])
  const unknown = args.map((arg) => arg.replace(/=.*/s, '')).find((arg) => /^--\w/.test(arg) && !known.includes(arg))
  const [meant] = unknown ? suggestionList(unknown, known) : []
  return meant && `error: unknown option '${unknown}' (Did you mean ${meant}?)`
}

/** Adds to commander's own message what the command accepts, if the message does not say it. */
function explain(command: Command, given: string, args: string[]): string {
  // A required option is missing because its name was mistyped.
  const message = given.startsWith('error: required option') ? (unknownOption(command, args) ?? given) : given
  const line = message
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(/([^.)])$/, '$1.')
  // One of the sentences above says what is accepted.
  const refusal = line.replace(/ is invalid( for argument '\w+')?\. (?=must )/, ' is invalid$1: it ')
  if (refusal !== line) return `${refusal.replace(/(argument '[^']{60})[^']+/, '$1…')}\n`
  const hint = line.includes('too many arguments') ? ' Write a value with spaces in quotes.' : ''
  const commands = command.commands.map((sub) => sub.name()).join(', ')
  if (commands) return `${line} Commands: ${commands}.\n`
  const usage = command.name() + command.usage().replace('[options]', '')
  const options = command.options.map(({ flags }) => flags).join(', ')
  return `${line}${hint} Usage: npm run keys -- ${usage} (options: ${options})\n`
}

export interface Terminal {
  environment: NodeJS.ProcessEnv
  /** Rejects if the text cannot be written. */
  out(text: string): Promise<void>
  err(text: string): void
}

const DAY_SECONDS = 86_400

interface PrismaError {
  meta?: { driverAdapterError?: PrismaError }
  cause?: { originalMessage?: string }
}

/** What PostgreSQL said, if an error of Prisma comes from there. */
function messageOf(error: unknown): string | undefined {
  const { meta, cause } = error as PrismaError
  return (meta?.driverAdapterError?.cause ?? cause)?.originalMessage
}

/** A reader that has what it wanted leaves, such as head. That is an error only if what was written is lost with it. */
async function print(printed: Printed, out: Terminal['out']) {
  const { text, ifLost } = typeof printed === 'string' ? { text: printed } : printed
  try {
    await out(text)
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (ifLost || code !== 'EPIPE')
      throw new StartupError([`Standard output cannot be written: ${message}.`, ifLost].filter(Boolean).join(' '))
  }
}

/** Runs a command whose arguments commander has read. */
async function run(command: Command, action: Action, { environment, out, err }: Terminal) {
  const settings = readSettings(environment)
  const warn = (message: string) => err(`${message}\n`)
  const database = await openDatabase(settings, {
    join: true,
    // Only `create` may use a new database: the first key has to come from somewhere.
    mustExist: action !== keyCommands.create,
    timeoutMs: PATIENT_MS,
    onNotice: warn,
  })
  try {
    const options = command.opts<Options>()
    const [idOrPrefix, value] = command.processedArgs
    if (!options.json) warn(`Database: ${database.name}`)
    const printed = await action({ database, settings, options, warn }, idOrPrefix, value).catch((error) => {
      const message = messageOf(error)
      if (!message && !isAway(error)) throw error
      throw databaseError(message ? new Error(message) : error, 'DATABASE_URL', database.name)
    })
    await print(printed, out)
  } finally {
    await database.close()
  }
}

function createProgram(terminal: Terminal, args: string[]) {
  const { err: writeErr } = terminal
  const writeOut = (text: string) => void print(text, terminal.out).catch((error) => writeErr(`${reasonOf(error)}\n`))
  const onTerminal = (command: Command) =>
    command.exitOverride().configureOutput({
      writeOut,
      writeErr,
      outputError: (message, write) => write(explain(command, message, args)),
    })
  const program = onTerminal(
    new Command('keys')
      .description(
        'Manages API keys. <key> is the id or the prefix of a key; show, usage and history also take a name that only one valid key has.',
      )
      .configureHelp({ showGlobalOptions: true }),
  )
  const define = (usage: string, action: Action, description: string) => {
    const command = onTerminal(program.command(usage))
    command.action(() => run(command, action, terminal))
    return command.description(description).option('--json', 'print JSON, for programs')
  }
  const withLimits = (command: Command) =>
    command
      .option('--minute-limit <n>', 'requests per minute (Enterprise)', count())
      .option('--day-limit <n>', 'requests per day (Enterprise)', count())

  const withContact = (command: Command, as: (read: Read) => Read) =>
    command
      .option('--owner <owner>', 'whose key it is, a person or a company (the key shows it)', as(label()))
      .option('--email <address>', 'where to write to about the key', as(address))
      .option('--note <text>', 'what else there is to know about the key', as(label(MAX_TEXT)))

  const { create, list, show, update, revoke, delete: remove, rotate, plan, access, ban, unban } = keyCommands
  const planNames = Object.keys(plans)
  const planOption = new Option('--plan <plan>', `the plan: ${planNames.join(', ')}`)
  const planArgument = new Argument('<plan>', planNames.join(', ')).argParser(choice(planNames))
  const accessNames = Object.values(Access)
  const accessArgument = new Argument('<access>', accessNames.join(' or ')).argParser(choice(accessNames))

  const named = define('create', create, 'create a key and print it once')
    .requiredOption('--name <name>', 'what the key is called', label())
    .addOption(planOption.argParser(choice(planNames)).makeOptionMandatory())
  withLimits(withContact(named, (read) => read))
    .option('--access <access>', 'write, or read for a key that may only read', choice(accessNames), Access.write)
    .option('--expires <date>', 'when the key expires, in UTC, or never (default: never)', dateOrNever)
    // Before a database is made.
    .hook('preAction', (command) => void limitsFor(command.opts().plan, command.opts()))
  define('list', list, 'list all keys')
    .option('--name <text>', 'only keys whose name has this, in any case')
    .option('--owner <text>', 'only keys whose owner has this, in any case')
    .option('--email <text>', 'only keys whose e-mail address has this, in any case')
  define('show <key>', show, 'show a key, without its secret')
  const updated = define('update <key>', update, 'change the name of a key, whose it is, or when it expires').option(
    '--name <name>',
    'what the key is called',
    label(),
  )
  withContact(updated, orEmpty)
    .addHelpText('after', '\nAn empty text removes an owner, an address or a note: --note ""')
    .option('--expires <date>', 'when the key expires, in UTC, or never', dateOrNever)
  define('revoke <key>', revoke, 'revoke a key permanently')
  define('delete <key>', remove, 'delete a revoked key and its usage; its history stays')
  define(
    'rotate <key>',
    rotate,
    'create a key with the same name, owner, plan, limits, access and ban, and let the old one expire',
  )
    .option('--grace <seconds>', 'how long the old key still works', count(), DAY_SECONDS)
    .option(
      '--expires <date>',
      'when the new key expires, or never (required if the old key has an expiry date)',
      dateOrNever,
    )
  withLimits(define('plan <key>', plan, 'change the plan').addArgument(planArgument))
  define('access <key>', access, 'change whether the key may change data').addArgument(accessArgument)
  define('ban <key>', ban, 'ban a key').option('--for <seconds>', 'how long', count(), DAY_SECONDS)
  define('unban <key>', unban, 'lift a ban')
  define('usage [key]', usage, 'show how much of its quota each key has used, or what it has used on each day or hour')
    .option('--days <n>', `the last n days in UTC, today included (1 to ${USAGE_DAYS})`, count(USAGE_DAYS))
    .addOption(
      new Option('--hours <n>', `the last n hours, this one included (1 to ${MAX_USAGE_HOURS})`)
        .argParser(count(MAX_USAGE_HOURS))
        .conflicts('days'),
    )
  define('history [key]', history, 'show what happened to a key, or to all keys, and who changed it')
  return program
}

/** Runs one command, and returns its exit code. */
export async function runKeys(args: string[], terminal: Terminal): Promise<number> {
  try {
    const program = createProgram(terminal, args)
    const command = program.commands.find((one) => one.name() === args[0])
    const taken = command ? takenByNpm(command, args, terminal.environment) : []
    if (taken.length > 0)
      throw new StartupError(
        `npm has taken ${taken.join(' and ')} for itself. Write -- before the command: npm run keys -- ${args[0]} …`,
      )
    await program.parseAsync(args, { from: 'user' })
    return 0
  } catch (error) {
    // Commander has printed the reason, or the help that was asked for.
    if (error instanceof CommanderError) return error.exitCode
    terminal.err(`${reasonOf(error)}\n`)
    return 1
  }
}
