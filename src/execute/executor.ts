import {
  type DocumentNode,
  type ExecutionResult,
  type FragmentDefinitionNode,
  type GraphQLError,
  type GraphQLObjectType,
  type GraphQLSchema,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  visit,
} from 'graphql'
import { collectFields } from 'graphql/execution/collectFields.js'
import {
  addError,
  type Cancelled,
  type Data,
  type Execution,
  executeFields,
  executeSerially,
  isPromise,
  Plan,
  type PreparedField,
  prepareFields,
  throwIfCancelled,
  variableOf,
} from './fields.js'

export { AnswerTooLong } from './fields.js'

// Each combination of the variables in @skip and @include has its own selection; this bounds the memory of a document.
export const MAX_PLANS = 4

export interface ExecutionRequest {
  /** Coerced and validated: they are used as they are. */
  variables?: Data
  contextValue?: unknown
  rootValue?: unknown
  /** Ends the execution from outside: then no further resolver is called. */
  cancelled?: Cancelled
  /** The most characters of the keys and texts of the result. What comes after them fails with AnswerTooLong. */
  maxLength?: number
}

/**
 * Executes the operation. As in graphql-js, errors of fields are part of the result, and the result is a promise only if
 * something in it is asynchronous. Throws or rejects only if cancelled. Unlike graphql-js, leaves no
 * rejection of a field or list item unhandled.
 */
export type PreparedOperation = (request: ExecutionRequest) => ExecutionResult | Promise<ExecutionResult>

/**
 * Prepares an operation of a validated document. The first execution to reach a selection collects its fields, coerces
 * arguments that need no variables, and chooses completers; later executions reuse them.
 *
 * `nulls: 'omit'` leaves out keys whose value is null. Null items stay in their lists, and so do nulls inside scalars.
 */
export function prepare(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
  { nulls = 'keep' }: { nulls?: 'keep' | 'omit' } = {},
): PreparedOperation {
  const rootType = schema.getRootType(operation.operation) as GraphQLObjectType
  const fragments: Record<string, FragmentDefinitionNode> = Object.create(null)
  for (const node of document.definitions) if (node.kind === Kind.FRAGMENT_DEFINITION) fragments[node.name.value] = node
  const omitNulls = nulls === 'omit'
  const isSerial = operation.operation === OperationTypeNode.MUTATION
  const conditions = conditionVariables(document)
  const selections = new Map<string, PreparedField[]>()

  const selectionFor = (variableValues: Data) => {
    const key = conditions.length > 0 ? conditions.map((name) => variableOf(variableValues, name)).join() : ''
    let fields = selections.get(key)
    if (!fields) {
      fields = prepareFields(
        rootType,
        collectFields(schema, fragments, variableValues, rootType, operation.selectionSet),
        new Plan(),
      )
      if (selections.size === MAX_PLANS) selections.clear()
      selections.set(key, fields)
    }
    return fields
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
      schema,
      fragments,
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
      const fields = selectionFor(variableValues)
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

/** The names of the variables that @skip and @include use. */
function conditionVariables(document: DocumentNode) {
  const names = new Set<string>()
  visit(document, {
    Directive({ name, arguments: given = [] }) {
      if (name.value !== 'skip' && name.value !== 'include') return
      for (const { value } of given) if (value.kind === Kind.VARIABLE) names.add(value.name.value)
    },
  })
  return [...names]
}

function resultOf({ errors, cancelled }: Execution, data: Data | null): ExecutionResult {
  throwIfCancelled(cancelled)
  return errors ? { errors: [...errors.values()], data } : { data }
}

function withoutData(execution: Execution, error: GraphQLError) {
  addError(execution, undefined, error)
  return resultOf(execution, null)
}
