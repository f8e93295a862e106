import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger } from 'pino'

/** How long a line may wait for others, in milliseconds. */
const GATHER_MS = 100
/** What may wait for a reader that does not read, in characters. Later lines are lost, rather than memory or requests. */
const MAX_WAITING = 16_777_216

/** How often an exit tries to write to a reader that does not read, every 100 ms. */
const EXIT_TRIES = 5

/**
 * Standard error, because standard output is for the output of commands. Lines are gathered, because each write costs
 * more than a line does. All are written before the process exits, if somebody reads them.
 */
function standardError(): DestinationStream {
  let tries = Number.POSITIVE_INFINITY
  const stream = pino.destination({ fd: 2, sync: false, maxLength: MAX_WAITING, retryEAGAIN: () => tries-- > 0 })
  let lines = ''
  const pass = () => {
    if (lines) stream.write(lines)
    lines = ''
  }
  // Before pino's own listener, which would wait for the reader forever.
  process.prependListener('exit', () => {
    pass()
    tries = EXIT_TRIES
    try {
      stream.flushSync()
    } catch {
      stream.destroy()
    }
  })
  return {
    write(line) {
      if (!lines) setTimeout(pass, GATHER_MS).unref()
      lines += line
    },
  }
}

/** The same lines for people. Control characters are left out, because a terminal would obey them. */
const terminal: DestinationStream = {
  write(line) {
    const { level, time, msg, err, ...fields } = JSON.parse(line)
    const details = Object.entries(fields).map(([name, value]) => ` ${name}=${JSON.stringify(value)}`)
    const text = `${time.slice(11, 23)} ${pino.levels.labels[level]} ${msg}${details.join('')}\n${err ? `${err.stack}\n` : ''}`
    process.stderr.write(text.replace(/[^\P{Cc}\n]/gu, ''))
  },
}

const latest = { ms: 0, text: '' }
/** The time in ISO 8601, formatted once for all lines of a millisecond. */
function timestamp(): string {
  const ms = Date.now()
  if (ms !== latest.ms) {
    latest.ms = ms
    latest.text = `,"time":"${new Date(ms).toISOString()}"`
  }
  return latest.text
}

/** Structured logs: JSON, one object per line; on a terminal, text. */
export const createLog = (level: string, to = process.stderr.isTTY ? terminal : standardError()): Logger =>
  pino({ level, base: null, timestamp }, to)
