import type { GraphQLError, GraphQLResolveInfo } from 'graphql'
import type { Path } from './places.js'
import type { Execution, Field } from './plan.js'

// What happens to a whole execution: errors, its end, and pauses.

/** Records an error, unless its position or a parent is already null because of another one. */
export function addError(execution: Execution, path: Path | undefined, error: GraphQLError): void {
  execution.errors ??= new Map()
  for (let position = path; position !== undefined; position = position.prev) if (execution.errors.has(position)) return
  if (!execution.errors.has(undefined)) execution.errors.set(path, error)
}

/** Ends the execution: what is pending of it is neither waited for nor recorded. */
function end(execution: Execution, reason: Error): never {
  execution.ended = reason
  execution.end?.(reason)
  throw reason
}

export function throwIfCancelled(execution: Execution): void {
  const reason = execution.ended ?? execution.cancelled?.()
  if (reason) end(execution, reason)
}

/** Counts what was written toward the length of the result. */
export function countLength(execution: Execution, length: number): void {
  execution.budget -= length
  if (execution.budget < 0) end(execution, execution.tooLong(execution.maxLength))
}

/** How many steps an execution makes before it asks whether its turn is over. */
const STRIDE = 32

/** Does something for each index, in several turns of the event loop if that takes long. */
export function forEach(
  execution: Execution,
  count: number,
  step: (index: number) => void,
  from = 0,
): void | Promise<void> {
  for (let i = from; i < count; ) {
    step(i++)
    if (++execution.steps < STRIDE) continue
    const paused = execution.pause()
    // Once the turn is over, whatever else begins in it asks at its first step.
    if (!paused) execution.steps = 0
    else
      return paused.then(() => {
        throwIfCancelled(execution)
        return forEach(execution, count, step, i)
      })
  }
}

/** What resolvers learn of the execution. */
export function infoOf(execution: Execution, field: Field, path: Path | undefined): GraphQLResolveInfo {
  const { plan, rootValue, operation, variableValues } = execution
  const { schema, fragments } = plan.selections
  const { name: fieldName, type: returnType, parentType, nodes: fieldNodes } = field
  return {
    fieldName,
    fieldNodes,
    returnType,
    parentType,
    path: path as Path,
    schema,
    fragments,
    rootValue,
    operation,
    variableValues,
  }
}

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
