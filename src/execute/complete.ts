import {
  defaultFieldResolver,
  defaultTypeResolver,
  type FieldNode,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLLeafType,
  type GraphQLList,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  getArgumentValues,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  locatedError,
  responsePathAsArray,
} from 'graphql'
import { inspect } from 'graphql/jsutils/inspect.js'
import { ApiError } from '../../schema/errors.js'
import type { Cancelled, Complete, Data, Execution, Field, Path, PlannedField, Slot } from './plan.js'

/** Places of a document that an error names. */
const MAX_LOCATIONS = 10

/** The result is longer than the request allows. */
export class ResponseTooLong extends ApiError {
  constructor() {
    super('invalid_request', 'The response is too long. Select fewer fields or smaller pages.')
  }
}

// Unlike Object.create(null), keeps V8's fast properties; unlike {}, takes an alias named `__proto__` as any other key.
export class ResultObject {
  [key: string]: unknown
}
Object.setPrototypeOf(ResultObject.prototype, null)

const isObject = (value: unknown): value is Data => typeof value === 'object' && value !== null

export function isPromise(value: unknown): value is Promise<unknown> {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  return typeof (value as { then?: unknown }).then === 'function'
}

export function throwIfCancelled(cancelled: Cancelled | undefined): void {
  const reason = cancelled?.()
  if (reason) throw reason
}

/** Records an error, unless its position or a parent is already null because of another one. */
export function addError(execution: Execution, path: Path | undefined, error: GraphQLError) {
  execution.errors ??= new Map()
  for (let position = path; position !== undefined; position = position.prev) if (execution.errors.has(position)) return
  if (!execution.errors.has(undefined)) execution.errors.set(path, error)
}

/** Records the error and returns null; if the type does not allow null, throws the error for the parent to handle. */
function fail(execution: Execution, { type, nodes }: Slot, path: Path, error: unknown) {
  const located = locatedError(error, nodes.slice(0, MAX_LOCATIONS), responsePathAsArray(path))
  if (isNonNullType(type)) throw located
  addError(execution, path, located)
  return null
}

function setKey(execution: Execution, result: Data, key: string, value: unknown) {
  execution.room -= typeof value === 'string' ? key.length + value.length : key.length
  if (execution.room < 0) throw new ResponseTooLong()
  if (value !== null || !execution.omitNulls) result[key] = value
  else if (key in result) delete result[key] // the placeholder of an asynchronous value
}

/** Resolves and completes the fields of an object concurrently. */
export function executeFields(
  execution: Execution,
  fields: readonly PlannedField[],
  source: unknown,
  path: Path | undefined,
  result: Data = new ResultObject(),
): Data | Promise<Data> {
  let pending: Promise<void>[] | undefined
  try {
    for (const field of fields) {
      const completed = executeField(execution, field, source, path)
      if (isPromise(completed)) {
        result[field.key] = undefined // a placeholder keeps the keys in document order
        pending ??= []
        pending.push(completed.then((value) => setKey(execution, result, field.key, value)))
      } else setKey(execution, result, field.key, completed)
    }
  } catch (error) {
    if (!pending) throw error
    // Like graphql-js, wait: errors below the pending fields are reported too, and their rejections are handled.
    const rethrow = () => {
      throw error
    }
    return Promise.all(pending).then(rethrow, rethrow)
  }
  return pending ? Promise.all(pending).then(() => result) : result
}

function executeField(execution: Execution, field: PlannedField, source: unknown, parentPath: Path | undefined) {
  const readsProperty = field.isProperty && isObject(source)
  let value: unknown
  if (readsProperty) {
    try {
      value = source[field.name]
      // A value that is there needs no path and no info, unless it is wrong. Nearly all values of lists are such ones.
      if (typeof value !== 'function' && !isPromise(value)) return field.complete(execution, value)
    } catch (error) {
      return fail(execution, field, pathOf(field, parentPath), error)
    }
  }
  const path = pathOf(field, parentPath)
  try {
    if (!readsProperty || typeof value === 'function') value = resolve(execution, field, source, path)
  } catch (error) {
    return fail(execution, field, path, error)
  }
  return completeAt(execution, field, value, path)
}

// Pothos finds preloaded relations by the identity of this object: paths below the field must have it as `prev`.
const pathOf = ({ key, parentType }: Field, prev: Path | undefined): Path => ({ prev, key, typename: parentType.name })

function resolve(execution: Execution, field: PlannedField, source: unknown, path: Path): unknown {
  const { cancelled, contextValue, variableValues } = execution
  throwIfCancelled(cancelled)
  const { args, resolve = defaultFieldResolver } = field.definition
  const given = args.length > 0 ? getArgumentValues(field.definition, field.nodes[0] as FieldNode, variableValues) : {}
  return resolve(source, given, contextValue, infoOf(execution, field, path))
}

function infoOf(execution: Execution, field: Field, path: Path): GraphQLResolveInfo {
  const { plan, rootValue, operation, variableValues } = execution
  const { schema, fragments } = plan.selections
  const { name: fieldName, type: returnType, parentType } = field
  const fieldNodes = plan.nodesOf(variableValues, field)
  return {
    fieldName,
    fieldNodes,
    returnType,
    parentType,
    path,
    schema,
    fragments,
    rootValue,
    operation,
    variableValues,
  }
}

/** Completes a value, or a promise of it. Returns null, or a promise of it, if that fails and the type allows null. */
function completeAt(execution: Execution, slot: Slot, value: unknown, path: Path) {
  try {
    const completed = isPromise(value)
      ? value.then((resolved) => slot.complete(execution, resolved, path))
      : slot.complete(execution, value, path)
    if (!isPromise(completed)) return completed
    return completed.then(undefined, (error) => fail(execution, slot, path, error))
  } catch (error) {
    return fail(execution, slot, path, error)
  }
}

/** The function that completes values of a type. */
export function completerOf(type: GraphQLOutputType, field: Field): Complete {
  const isNonNull = isNonNullType(type)
  const complete = nullableCompleterOf(isNonNull ? type.ofType : type, field)
  return (execution, value, path) => {
    if (value instanceof Error) throw value
    const completed = value === null || value === undefined ? null : complete(execution, value, path)
    if (completed === null && isNonNull) throw new Error(`Cannot return null for non-nullable field ${labelOf(field)}.`)
    return completed
  }
}

function nullableCompleterOf(type: GraphQLOutputType, field: Field): Complete {
  if (isListType(type)) return listCompleter(type, field)
  if (isLeafType(type)) return (_execution, value) => serialize(type, value)
  if (isAbstractType(type)) return abstractCompleter(type, field)
  return objectCompleter(type as GraphQLObjectType, field)
}

const labelOf = ({ parentType, name }: Field) => `${parentType.name}.${name}`

function serialize(type: GraphQLLeafType, value: unknown): unknown {
  const serialized = type.serialize(value)
  if (serialized !== null && serialized !== undefined) return serialized
  const call = `${inspect(type)}.serialize(${inspect(value)})`
  throw new Error(`Expected \`${call}\` to return non-nullable value, returned: ${inspect(serialized)}`)
}

function listCompleter({ ofType: type }: GraphQLList<GraphQLOutputType>, field: Field): Complete {
  const slot: Slot = { type, nodes: field.nodes, complete: completerOf(type, field) }
  return (execution, list, path) => {
    if (!isObject(list) || typeof (list as unknown as Iterable<unknown>)[Symbol.iterator] !== 'function')
      throw new GraphQLError(`Expected Iterable, but did not find one for field "${labelOf(field)}".`)
    const items: unknown[] = []
    let isPending = false
    try {
      for (const item of list as unknown as Iterable<unknown>) {
        const completed = completeAt(execution, slot, item, { prev: path, key: items.length, typename: undefined })
        if (isPromise(completed)) isPending = true
        items.push(completed)
      }
    } catch (error) {
      // The list fails immediately. If pending or unreached items reject later, graphql-js leaves the rejections
      // unhandled, which would end the process.
      ignoreRejections(items)
      ignoreRejections(list)
      throw error
    }
    return isPending ? Promise.all(items) : items
  }
}

/** Handles the rejections of an abandoned list. Skips other thenables: calling `then` on Prisma's starts a query. */
function ignoreRejections(value: unknown): void {
  if (value instanceof Promise) value.then(ignoreRejections, () => {})
  else if (Array.isArray(value)) value.forEach(ignoreRejections)
}

function objectCompleter(type: GraphQLObjectType, field: Field): Complete {
  let fields: PlannedField[] | undefined
  return (execution, value, path) => {
    fields ??= execution.plan.below(execution.variableValues, type, field.nodes)
    return executeFields(execution, fields, value, path)
  }
}

function abstractCompleter(type: GraphQLAbstractType, field: Field): Complete {
  const resolveType = type.resolveType ?? defaultTypeResolver
  return (execution, value, path) => {
    const { plan, contextValue, variableValues } = execution
    const { schema } = plan.selections
    const completeAs = (name: unknown) => {
      const named = typeof name === 'string' ? schema.getType(name) : undefined
      if (!isObjectType(named) || !schema.isSubType(type, named)) {
        const message = `Abstract type "${type.name}" was resolved to ${inspect(name)}, which is not one of its types.`
        throw new GraphQLError(message, { nodes: field.nodes })
      }
      return executeFields(execution, plan.below(variableValues, named, field.nodes), value, path)
    }
    const name = resolveType(value, contextValue, infoOf(execution, field, path as Path), type)
    return isPromise(name) ? name.then(completeAs) : completeAs(name)
  }
}
