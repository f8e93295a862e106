import { type Command, InvalidArgumentError } from 'commander'

// Values of the command line: each is read into what it means, or refused with a sentence that says what is accepted.

export const MAX_INT = 2_147_483_647
const MAX_DATE = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

export const count =
  (max = MAX_INT) =>
  (text: string) => {
    const value = /^\d+$/.test(text) ? Number(text) : 0
    if (value < 1 || value > max) throw new InvalidArgumentError(`must be a whole number from 1 to ${max}.`)
    return value
  }

export const date = (text: string) => {
  const time = /^\d{4}-\d{2}-\d{2}/.test(text) ? Date.parse(text) : Number.NaN
  if (time > Date.now() && time <= MAX_DATE) return new Date(time)
  throw new InvalidArgumentError(
    'must be a date in the future, such as 2027-01-31 or 2027-01-31T12:00:00Z, and not after the year 9999.',
  )
}

export const dateOrNever = (text: string) => (text.toLowerCase() === 'never' ? 'never' : date(text))

export const label = (text: string) => {
  const value = text.trim()
  if (value === '' || [...value].length > 100 || /\p{C}/u.test(value))
    throw new InvalidArgumentError('must have 1 to 100 characters and no control character.')
  return value
}

/** One of some words, in any case. */
export const choice = (words: string[]) => (text: string) => {
  const word = words.find((word) => word.toLowerCase() === text.toLowerCase())
  if (!word) throw new InvalidArgumentError(`must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}.`)
  return word
}

/** Adds to commander's own message what the command accepts, if the message does not say it. */
export function explain(command: Command, message: string): string {
  const line = message
    .trim()
    .replaceAll(/\s*\n\s*/g, ' ')
    .replace(/([^.)])$/, '$1.')
  // One of the sentences above says what is accepted.
  const refusal = line.replace(/ is invalid( for argument '\w+')?\. (?=must )/, ' is invalid$1: it ')
  if (refusal !== line) return `${refusal}\n`
  const commands = command.commands.map((sub) => sub.name()).join(', ')
  if (commands) return `${line} Commands: ${commands}.\n`
  const usage = command.name() + command.usage().replace('[options]', '')
  const options = command.options.map(({ flags }) => flags).join(', ')
  return `${line} Usage: npm run keys -- ${usage} (options: ${options})\n`
}
