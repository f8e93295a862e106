import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger } from 'pino'

/** Structured logs on standard error, because standard output is for the output of commands. */
export const createLog = (level: string, to: DestinationStream = pino.destination(2)): Logger =>
  pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, to)
