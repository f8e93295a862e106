import cluster from 'node:cluster'
import { type DestinationStream, type Logger, pino } from 'pino'
import { readable } from './stack.js'

export type { Logger } from 'pino'

/** How long a line may wait for others, in milliseconds, and how many bytes of lines are written together. */
const GATHER_MS = 100
/** Processes that share a pipe write no more than it takes in one piece (PIPE_BUF): their lines would mix. */
const GATHER_BYTES = cluster.isWorker ? 4_096 : 65_536
/** How many bytes may wait if nothing reads standard error, or its disk is full. Later lines are lost, to save memory and requests. */
const MAX_WAITING = 16_777_216

/** How often an exit tries to write if nothing reads, every 100 ms. */
const EXIT_TRIES = 5

/**
 * Standard error, because standard output is for the output of commands. Lines are gathered, because each write costs
 * more than a line does. All are written before the process exits, if something reads them; in order, after a flush.
 */
function standardError(): DestinationStream & Pick<Logger, 'flush'> {
  let tries = Number.POSITIVE_INFINITY
  const stream = pino.destination({
    fd: 2,
    sync: false,
    minLength: GATHER_BYTES - 1,
    maxWrite: GATHER_BYTES,
    periodicFlush: GATHER_MS,
    maxLength: MAX_WAITING,
    retryEAGAIN: () => tries-- > 0,
    // Gathering strings takes three times the processor time, but they are all that the type of `write` knows.
    contentMode: 'buffer',
  })
  // Such as a full disk. The lines wait until it has room; without a listener, the error would end the process.
  stream.on('error', () => {})
  // Before pino's own listener, which would wait for the reader forever.
  process.prependListener('exit', () => {
    tries = EXIT_TRIES
    try {
      stream.flushSync()
    } catch {
      stream.destroy()
    }
  })
  return {
    write: (line) => void stream.write(Buffer.from(line) as unknown as string),
    flush: (done) => stream.flush(done),
  }
}

/** The same lines for people. Control characters are left out, because a terminal would execute them. */
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

function destination(level: string): DestinationStream {
  if (level === 'silent') return { write() {} }
  return process.stderr.isTTY ? terminal : standardError()
}

function err(error: Error) {
  const fields = pino.stdSerializers.err(error)
  if (fields.stack) fields.stack = readable(fields.stack)
  return fields
}

/** Structured logs: JSON, one object per line; on a terminal, text. Of several processes, each line names its own. */
export const createLog = (level: string, to = destination(level)): Logger =>
  pino({ level, base: cluster.worker ? { gateway: cluster.worker.id } : null, timestamp, serializers: { err } }, to)
