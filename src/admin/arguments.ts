import { type Command, InvalidArgumentError } from 'commander'

// Values of the command line: each is read into what it means, or refused with a sentence that says what is accepted.

export const MAX_INT = 2_147_483_647
const MAX_DATE = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

export const count = (text: string, max = MAX_INT) => {
  if (!/^\d+$/.test(text) || Number(text) < 1 || Number(text) > max)
    throw new InvalidArgumentError(`must be a whole number from 1 to ${max}.`)
  return Number(text)
}

export const date = (text: string) => {
  const value = new Date(text)
  if (
    !/^\d{4}-\d{2}-\d{2}/.test(text) ||
    Number.isNaN(value.getTime()) ||
    value.getTime() <= Date.now() ||
    value.getTime() > MAX_DATE
  )
    throw new InvalidArgumentError(
      'must be a date in the future, such as 2027-01-31 or 2027-01-31T12:00:00Z, and not after the year 9999.',
    )
  return value
}

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
  // Of a refused value, which is followed by one of the sentences above.
  const isValue = / is invalid( for argument '\w+')?\. must /
  if (isValue.test(line)) return `${line.replace(isValue, ' is invalid$1: it must ')}\n`
  const commands = command.commands.map((sub) => sub.name()).join(', ')
  if (commands) return `${line} Commands: ${commands}.\n`
  const words = command.registeredArguments.map((argument) =>
    argument.required ? ` <${argument.name()}>` : ` [${argument.name()}]`,
  )
  const options = command.options.map(({ flags }) => flags).join(', ')
  return `${line} Usage: npm run keys -- ${command.name()}${words.join('')} (options: ${options})\n`
}
