import {
  type DocumentNode,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  type OperationDefinitionNode,
  OperationTypeNode,
} from 'graphql'
import { addError, completerOf, executeFields, isPromise, ResultObject, throwIfCancelled } from './complete.js'
import { type Cancelled, type Data, type Execution, Plan, type PlannedField } from './plan.js'
import { Selections } from './selections.js'

export { ResponseTooLong } from './complete.js'
export type { Cancelled } from './plan.js'

/** Each combination of the variables in @skip and @include has a plan; this bounds the memory of a document. */
export const MAX_PLANS = 4

export interface ExecutionRequest {
  /** Coerced and validated: they are used as they are. */
  variables?: Data
  contextValue?: unknown
  rootValue?: unknown
  /** Ends the execution from outside: then no further resolver is called. */
  cancelled?: Cancelled
  /** The most characters of the keys and texts of the result. What comes after them fails with ResponseTooLong. */
  maxLength?: number
}

/**
 * Executes the operation. As in graphql-js, errors of fields are part of the result, and the result is a promise only if
 * something in it is asynchronous. Throws or rejects only if cancelled. Unlike graphql-js, leaves no rejection of a field
 * or list item unhandled.
 */
export type PreparedOperation = (request: ExecutionRequest) => ExecutionResult | Promise<ExecutionResult>

/**
 * Prepares an operation of a validated document. The first execution to reach a selection collects its fields and chooses
 * completers; later executions reuse them.
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

  function planFor(variables: Data): Plan {
    const key = conditions.map((name) => (Object.hasOwn(variables, name) ? variables[name] : undefined)).join()
    const plan = plans.get(key) ?? new Plan(selections, completerOf)
    if (plans.size === MAX_PLANS && !plans.has(key)) plans.clear()
    plans.set(key, plan)
    return plan
  }

  return ({
    variables: variableValues = {},
    contextValue,
    rootValue,
    cancelled,
    maxLength: room = Number.MAX_SAFE_INTEGER,
  }) => {
    throwIfCancelled(cancelled)
    // Spelled out: V8 is a hundred times slower in adding properties after a spread.
    const execution: Execution = {
      plan: planFor(variableValues),
      operation,
      omitNulls,
      rootValue,
      contextValue,
      variableValues,
      cancelled,
      room,
      errors: undefined,
    }
    try {
      const fields = execution.plan.below(variableValues, rootType, [operation])
      const data = isSerial
        ? executeSerially(execution, fields, rootValue)
        : executeFields(execution, fields, rootValue, undefined)
      if (!isPromise(data)) return resultOf(execution, data)
      return data.then(
        (resolved) => resultOf(execution, resolved),
        (error) => withoutData(execution, error),
      )
    } catch (error) {
      return withoutData(execution, error as GraphQLError)
    }
  }
}

/** Resolves and completes the fields of a mutation one after another. */
function executeSerially(
  execution: Execution,
  fields: readonly PlannedField[],
  source: unknown,
  result: Data = new ResultObject(),
): Data | Promise<Data> {
  for (const [i, field] of fields.entries()) {
    const done = executeFields(execution, [field], source, undefined, result)
    if (isPromise(done)) return done.then(() => executeSerially(execution, fields.slice(i + 1), source, result))
  }
  return result
}

function resultOf({ errors, cancelled }: Execution, data: Data | null): ExecutionResult {
  throwIfCancelled(cancelled)
  return errors ? { errors: [...errors.values()], data } : { data }
}

function withoutData(execution: Execution, error: GraphQLError) {
  addError(execution, undefined, error)
  return resultOf(execution, null)
}
