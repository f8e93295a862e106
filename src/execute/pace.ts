/** How long executions may keep one turn of the event loop before they give way to other requests, in milliseconds. */
const TURN_MS = 10

let startedAt: number | undefined

/** Whether executions have kept this turn of the event loop for too long. The first call in a turn starts it. */
export function isTurnOver(): boolean {
  if (startedAt !== undefined) return performance.now() - startedAt > TURN_MS
  startedAt = performance.now()
  setImmediate(() => {
    startedAt = undefined
  })
  return false
}
