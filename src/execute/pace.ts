// Executions take turns: a long one lets other requests continue.

/** How long executions may keep one turn of the event loop, together, in milliseconds. */
const TURN_MS = 10

let startedAt: number | undefined
const waiting: (() => void)[] = []

/** Returns a promise if an execution must wait for its turn. The first call in a turn of the event loop starts the clock. */
export function pause(): Promise<void> | undefined {
  if (startedAt === undefined) startTurn()
  else if (performance.now() - startedAt > TURN_MS) return new Promise((resolve) => waiting.push(resolve))
}

function startTurn(): void {
  startedAt = performance.now()
  setImmediate(() => {
    startedAt = undefined
    const next = waiting.shift()
    if (!next) return
    startTurn()
    next()
  })
}
