import { InvalidArgumentError } from 'commander'
import * as z from 'zod'
import { codePoints, MAX_INT } from '../../schema/kit/input/rules.js'
import { visible } from './table.js'

// Values of options and arguments: each is read into what it means, or refused with a sentence that says what is accepted.

const MAX_DATE = Date.UTC(9999, 11, 31, 23, 59, 59, 999)

export const count =
  (max = MAX_INT) =>
  (text: string) => {
    const value = /^\d+$/.test(text) ? Number(text) : 0
    if (value < 1 || value > max) throw new InvalidArgumentError(`must be a whole number from 1 to ${max}.`)
    return value
  }

/** A time without an offset is in UTC, as a day is. */
export const dateOrNever = (text: string) => {
  if (text.toLowerCase() === 'never') return 'never'
  const [day, time] = [text.slice(0, 10), text.slice(10)]
  const isDay = z.iso.date().safeParse(day).success
  const hasOffset = /(?:Z|[+-]\d\d:?\d\d)$/i.test(time)
  const moment = isDay ? Date.parse(time === '' || hasOffset ? text : `${text}Z`) : Number.NaN
  if (moment > Date.now() && moment <= MAX_DATE) return new Date(moment)
  throw new InvalidArgumentError(
    'must be never or a date in the future, such as 2027-01-31 or 2027-01-31T12:00:00Z, and not after the year 9999.',
  )
}

export const label =
  (max = 100) =>
  (text: string) => {
    const value = text.trim()
    if (!/\P{C}/u.test(value) || codePoints(value) > max || visible(value) !== value)
      throw new InvalidArgumentError(`must have 1 to ${max} characters and no control character.`)
    return value
  }

/** The longest address that can be written to (RFC 5321). */
const MAX_ADDRESS = 254

export const address = (text: string) => {
  const value = text.trim()
  if (value.length > MAX_ADDRESS || /\p{C}/u.test(value) || !z.regexes.unicodeEmail.test(value))
    throw new InvalidArgumentError(`must be an e-mail address of at most ${MAX_ADDRESS} characters.`)
  return value
}

export type Read = (text: string) => string

/** An empty text is a value, too. */
export const orEmpty =
  (read: Read): Read =>
  (text) =>
    text.trim() === '' ? '' : read(text)

/** One of some words, in any case. */
export const choice = (words: string[]) => (text: string) => {
  const word = words.find((word) => word.toLowerCase() === text.toLowerCase())
  if (!word) throw new InvalidArgumentError(`must be ${words.slice(0, -1).join(', ')} or ${words.at(-1)}.`)
  return word
}
