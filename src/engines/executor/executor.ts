import {
  type DocumentNode,
  type GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql'
import { addError, throwIfCancelled } from './execution.js'
import type { Column } from './json.js'
import { writeField } from './levels.js'
import { ErrorAt, Places } from './places.js'
import { type Cancelled, type Data, type Execution, Plan, type PlannedField } from './plan.js'
import { all, callAll, Failure, isPromise } from './promises.js'
import { Selections } from './selections.js'
import { writerOf } from './writers.js'

/** Each combination of the variables in @skip and @include has a plan; this bounds the memory of a document. */
export const MAX_PLANS = 4

export interface ExecutionRequest {
  /** Coerced and validated: they are used as they are. */
  variables?: Data
  contextValue?: unknown
  rootValue?: unknown
  /** Gives each root field of a mutation a transaction of its own. */
  isolate?: Isolate
  /** Ends the execution from outside: then no further resolver is called. */
  cancelled?: Cancelled
  /** Asked now and then: if it returns a promise, the execution waits for it. */
  pause?: Execution['pause']
  /** The most characters of the keys and leaves of the result. More of them end the execution with the error of `tooLong`. */
  maxLength?: number
  tooLong?: Execution['tooLong']
}

/**
 * Calls `work` with the context of a transaction, again if that must be repeated, and undoes what it has changed if the field is
 * refused.
 */
export type Isolate = (work: (contextValue: unknown) => Promise<Written>) => Promise<Written>

interface Written {
  column: Column
  isRefused: boolean
}

/** The data are the root fields as JSON, in their order; null because of an error. */
export interface Executed {
  data?: ReadonlyMap<string, string> | null
  errors?: readonly GraphQLError[]
}

/**
 * Executes the operation. As in graphql-js, errors of fields are part of the result, and the result is a promise only if
 * something in it is asynchronous. Throws or rejects only if it is cancelled or too long. Unlike graphql-js, leaves no rejection of a field
 * or list item unhandled.
 */
export type PreparedOperation = (request: ExecutionRequest) => Executed | Promise<Executed>

/**
 * Prepares an operation of a validated document. The first execution to reach a selection collects its fields and chooses
 * what writes them; later executions reuse that.
 *
 * `nulls: 'omit'` leaves out keys whose value is null. Null items stay in their lists, and so do nulls inside scalars.
 */
export function prepare(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  { nulls, selections = new Selections(schema, document) }: { nulls?: 'omit'; selections?: Selections } = {},
): PreparedOperation {
  const rootType = schema.getRootType(operation.operation) as GraphQLObjectType
  const conditions = [...selections.conditions]
  const omitNulls = nulls === 'omit'
  const isSerial = operation.operation === OperationTypeNode.MUTATION
  const plans = new Map<string, Plan>()
  const nodes = [operation]

  function planFor(variables: Data): Plan {
    const key = conditions.map((name) => (Object.hasOwn(variables, name) ? variables[name] : undefined)).join()
    const plan = plans.get(key) ?? new Plan(selections, writerOf)
    if (plans.size === MAX_PLANS && !plans.has(key)) plans.clear()
    plans.set(key, plan)
    return plan
  }

  return (request) => {
    const { variables: variableValues = {}, contextValue, rootValue, cancelled } = request
    const { isolate, pause = () => undefined, maxLength = Number.MAX_SAFE_INTEGER } = request
    const { tooLong = (max) => new RangeError(`The result would be longer than ${max} characters.`) } = request
    // Spelled out: V8 is a hundred times slower in adding properties after a spread.
    const execution: Execution = {
      plan: planFor(variableValues),
      operation,
      omitNulls,
      rootValue,
      contextValue,
      variableValues,
      cancelled,
      pause,
      steps: 0,
      ended: undefined,
      end: undefined,
      maxLength,
      budget: maxLength,
      tooLong,
      errors: undefined,
    }
    throwIfCancelled(execution)
    try {
      const { fields } = execution.plan.below(variableValues, rootType, nodes)
      const written = isSerial
        ? writeSerially(execution, fields, isolate ? writeIsolated(isolate) : writeRoot)
        : callAll(fields, (field) => writeRoot(execution, field))
      if (!isPromise(written) && !written.some(isPromise)) return resultOf(execution, fields, written as Column[])
      return new Promise((resolve, reject) => {
        execution.end = reject
        if (execution.ended) reject(execution.ended)
        Promise.resolve(isPromise(written) ? written : all(written))
          .then((columns) => resultOf(execution, fields, columns))
          .then(resolve, (error) => (execution.ended ? reject(error) : resolve(withoutData(execution, error))))
      })
    } catch (error) {
      if (execution.ended) throw error
      // @skip or @include got null.
      return withoutData(execution, error)
    }
  }
}

const root = new Places(() => undefined)

const writeRoot = (execution: Execution, field: PlannedField) =>
  writeField(execution, field, [execution.rootValue], root)

/**
 * A root field of a mutation and what is selected below it. If an error makes it null, it has changed nothing; so it is if it
 * makes the result too long, and then those after it are not executed.
 */
const writeIsolated = (isolate: Isolate) => async (execution: Execution, field: PlannedField) => {
  const { maxLength, budget, tooLong } = execution
  let part = execution
  try {
    if (budget === 0) throw tooLong(maxLength)
    const { column } = await isolate(async (contextValue) => {
      // It can be repeated, and ends alone.
      part = { ...execution, contextValue, errors: execution.errors && new Map(execution.errors) }
      const column = await new Promise<Column>((resolve, reject) => {
        part.end = reject
        resolve(writeRoot(part, field))
      })
      return { column, isRefused: column.texts[0] === 'null' && part.errors?.size !== execution.errors?.size }
    })
    execution.errors = part.errors
    execution.budget = part.budget
    return column
  } catch (error) {
    if (budget === 0 || part.budget < 0) execution.budget = 0
    else throwIfCancelled(execution)
    return field.write(execution, [new Failure(error)], root.below(field.key, field.parentType.name))
  }
}

/** Resolves and writes the fields of a mutation one after another. A non-null one that fails is the last one. */
function writeSerially(
  execution: Execution,
  fields: readonly PlannedField[],
  write: typeof writeRoot,
  columns: Column[] = [],
): Column[] | Promise<Column[]> {
  while (columns.length < fields.length && !columns.at(-1)?.failed) {
    const column = write(execution, fields[columns.length] as PlannedField)
    if (isPromise(column)) return column.then((done) => writeSerially(execution, fields, write, [...columns, done]))
    columns.push(column)
  }
  return columns
}

function resultOf(execution: Execution, fields: readonly PlannedField[], columns: readonly Column[]): Executed {
  throwIfCancelled(execution)
  const failure = columns.find(({ failed }) => failed)?.failed?.get(0)
  if (failure) return withoutData(execution, failure)
  const data = new Map<string, string>()
  for (const [i, { key }] of fields.entries()) {
    const text = columns[i]?.texts[0] as string
    if (!execution.omitNulls || text !== 'null') data.set(key, text)
  }
  const { errors } = execution
  return errors ? { errors: [...errors.values()], data } : { data }
}

function withoutData(execution: Execution, error: unknown): Executed {
  addError(execution, undefined, error instanceof ErrorAt ? error.located : (error as GraphQLError))
  return { errors: [...(execution.errors?.values() ?? [])], data: null }
}
