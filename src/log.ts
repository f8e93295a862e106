import { type DestinationStream, type Logger, pino } from 'pino'

export type { Logger } from 'pino'

/** Structured logs on standard error, so that standard output stays what a person or a program asked for. */
export const createLog = (level: string, to: DestinationStream = pino.destination(2)): Logger =>
  pino({ level, base: null, timestamp: pino.stdTimeFunctions.isoTime }, to)
