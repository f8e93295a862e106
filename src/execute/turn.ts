let ending: Promise<void> | undefined

/**
 * The end of this turn of the event loop. Requests that arrived together and wait for it go on together, and Prisma
 * makes one query of those that ask for single things: it gathers what is asked in one tick. Each query begins after
 * the requests that share it have arrived, so that nobody reads a state older than their own last write.
 */
export function endOfTurn(): Promise<void> {
  ending ??= new Promise((resolve) =>
    setImmediate(() => {
      ending = undefined
      resolve()
    }),
  )
  return ending
}
