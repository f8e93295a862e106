import {
  defaultFieldResolver,
  defaultTypeResolver,
  type FieldNode,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLField,
  type GraphQLLeafType,
  type GraphQLList,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  getArgumentValues,
  getNamedType,
  getNullableType,
  isAbstractType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  locatedError,
  responsePathAsArray,
  SchemaMetaFieldDef,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
} from 'graphql'
import { collectSubfields } from 'graphql/execution/collectFields.js'
import { inspect } from 'graphql/jsutils/inspect.js'
import { ApiError } from '../../schema/errors.js'

type Path = GraphQLResolveInfo['path']
type Complete = (execution: Execution, value: unknown, info?: GraphQLResolveInfo, path?: Path) => unknown
export type Data = Record<string, unknown>

/** Places of a document that an error names. Each is found by a walk over the lines before it. */
const MAX_LOCATIONS = 10

/**
 * Returns why an execution must end; undefined while it may go on. It is asked before each resolver, because listening to
 * an AbortSignal would cost as much as a short query.
 */
export type Cancelled = () => Error | undefined

/** What all fields of one execution share. */
export interface Execution
  extends Pick<GraphQLResolveInfo, 'schema' | 'fragments' | 'rootValue' | 'operation' | 'variableValues'> {
  contextValue: unknown
  cancelled: Cancelled | undefined
  omitNulls: boolean
  /** Characters that the keys and texts of the result may still have. */
  room: number
  /** Errors by the position that each one set to null; `undefined` is the position of the whole data. */
  errors: Map<Path | undefined, GraphQLError> | undefined
}

export function throwIfCancelled(cancelled: Cancelled | undefined): void {
  const reason = cancelled?.()
  if (reason) throw reason
}

/** The result is longer than the request allows. */
export class AnswerTooLong extends ApiError {
  constructor() {
    super('invalid_request', 'The answer is too long. Ask for smaller pages or fewer fields.')
  }
}

/** A place that a value is completed for: a field, or the items of its list. */
interface Slot {
  type: GraphQLOutputType
  nodes: readonly FieldNode[]
  complete: Complete
}

/** A response key of a selection, with everything about it that does not depend on a value. */
export interface PreparedField extends Slot {
  key: string
  name: string
  parentType: GraphQLObjectType
  definition: GraphQLField<unknown, unknown>
  /** The arguments, if they are the same in every call. */
  args: Data | undefined
  /** Reads the arguments, if all that are given are variables. Undefined for values that graphql-js must judge. */
  argsOf: ((variables: Data) => Data | undefined) | undefined
  /** The value is a property of the parent: there is no resolver, no argument that can fail, no use of `info`. */
  isProperty: boolean
  isLeaf: boolean
  plan: Plan
  /** The nodes that its resolver gets (see Plan). */
  merged?: readonly FieldNode[]
}
type Field = Omit<PreparedField, 'complete'>

// Unlike Object.create(null), keeps V8's fast properties; unlike {}, takes an alias named `__proto__` as any other key.
class ResultObject {
  [key: string]: unknown
}
Object.setPrototypeOf(ResultObject.prototype, null)

export function isPromise(value: unknown): value is Promise<unknown> {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return false
  return typeof (value as { then?: unknown }).then === 'function'
}

const isObject = (value: unknown): value is Data => typeof value === 'object' && value !== null

const metaFields = new Map<string, GraphQLField<unknown, unknown>>(
  [SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef].map((field) => [field.name, field]),
)

const definitionOf = (parentType: GraphQLObjectType, { name }: FieldNode) =>
  (parentType.getFields()[name.value] ?? metaFields.get(name.value)) as GraphQLField<unknown, unknown>

/** The selections of an operation that have been prepared: each once, however many paths lead to it. */
export class Plan {
  readonly #numbers = new Map<FieldNode, number>()
  readonly #selections = new Map<string, PreparedField[]>()
  readonly #merged = new Map<string, readonly FieldNode[]>()

  /** The selection below the nodes of a field, which is prepared with its first value. */
  below({ schema, fragments, variableValues }: Execution, type: GraphQLObjectType, nodes: readonly FieldNode[]) {
    const key = this.#keyOf(type, nodes)
    const fields =
      this.#selections.get(key) ??
      prepareFields(type, collectSubfields(schema, fragments, variableValues, type, nodes as FieldNode[]), this)
    this.#selections.set(key, fields)
    return fields
  }

  /**
   * The nodes of a field for its resolver: equal fields as one node, fragments expanded, and without what is skipped.
   * Pothos walks them path by path, and would walk a fragment in a fragment in a fragment as often as it is spread.
   */
  merge(execution: Execution, type: GraphQLOutputType, nodes: readonly FieldNode[]): readonly FieldNode[] {
    const { schema, fragments, variableValues } = execution
    const named = getNamedType(type)
    if (isAbstractType(named)) return nodes
    if (!isObjectType(named)) return nodes.slice(0, 1)
    const key = this.#keyOf(named, nodes)
    const known = this.#merged.get(key)
    if (known) return known
    const selections: FieldNode[] = []
    try {
      const fields = collectSubfields(schema, fragments, variableValues, named, nodes as FieldNode[])
      for (const group of fields.values())
        selections.push(...this.merge(execution, definitionOf(named, group[0] as FieldNode).type, group))
    } catch {
      // @skip or @include got null: every value of this field will report it.
    }
    const [first] = nodes as [FieldNode]
    const merged = [{ ...first, directives: [], selectionSet: { kind: Kind.SELECTION_SET, selections } } as FieldNode]
    this.#merged.set(key, merged)
    return merged
  }

  #keyOf(type: GraphQLObjectType, nodes: readonly FieldNode[]) {
    return `${type.name}:${nodes.map((node) => this.#numberOf(node))}`
  }

  #numberOf(node: FieldNode) {
    const number = this.#numbers.get(node) ?? this.#numbers.size
    this.#numbers.set(node, number)
    return number
  }
}

/** Prepares the collected fields of an object type. */
export function prepareFields(
  parentType: GraphQLObjectType,
  collected: Map<string, readonly FieldNode[]>,
  plan: Plan,
): PreparedField[] {
  return Array.from(collected, ([key, nodes]): PreparedField => {
    const node = nodes[0] as FieldNode
    const name = node.name.value
    const definition = definitionOf(parentType, node)
    const { type } = definition
    const args = constantArguments(definition, node)
    const isProperty = !definition.resolve && args !== undefined && isLeafType(getNamedType(type))
    const argsOf = args ? undefined : variableArguments(definition, node)
    const isLeaf = isLeafType(getNullableType(type))
    const field: Field = { key, name, type, nodes, parentType, definition, args, argsOf, isProperty, isLeaf, plan }
    return { ...field, complete: completerOf(type, field) }
  })
}

/**
 * The arguments of a field if they can be coerced once. As in graphql-js, every call gets its own lists and objects,
 * because a resolver may change them, and a wrong literal is an error at the path of each call. (graphql-js shares the
 * default values of the schema between calls; so do these.)
 */
function constantArguments(definition: GraphQLField<unknown, unknown>, node: FieldNode): Data | undefined {
  try {
    const given = node.arguments ?? []
    if (given.some(({ value: { kind } }) => kind === Kind.VARIABLE || kind === Kind.LIST || kind === Kind.OBJECT))
      return
    const args = getArgumentValues(definition, node)
    return given.some(({ name }) => isObject(args[name.value])) ? undefined : args
  } catch {
    return undefined
  }
}

/** The value of a variable, whatever its name: that of one that was not sent can be a property of every object. */
export const variableOf = (variables: Data, name: string) =>
  Object.hasOwn(variables, name) ? variables[name] : undefined

function variableArguments(definition: GraphQLField<unknown, unknown>, { arguments: given = [] }: FieldNode) {
  const names = new Map(given.map(({ name, value }) => [name.value, value.kind === Kind.VARIABLE && value.name.value]))
  if ([...names.values()].includes(false)) return
  return (variables: Data) => {
    const args: Data = {}
    for (const { name, type, defaultValue } of definition.args) {
      const variable = names.get(name)
      const value = variable ? variableOf(variables, variable) : undefined
      if (value !== undefined) args[name] = value
      else if (defaultValue !== undefined) args[name] = defaultValue
      if (isNonNullType(type) && (args[name] ?? null) === null) return
    }
    return args
  }
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
  if (execution.room < 0) throw new AnswerTooLong()
  if (value !== null || !execution.omitNulls) result[key] = value
  else if (key in result) delete result[key] // the placeholder of an asynchronous value
}

/** Resolves and completes the fields of an object concurrently. */
export function executeFields(execution: Execution, fields: PreparedField[], source: unknown, path: Path | undefined) {
  const result: Data = new ResultObject()
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

/** Resolves and completes the fields of an object one after another, starting at `index`. */
export function executeSerially(
  execution: Execution,
  fields: PreparedField[],
  source: unknown,
  index = 0,
  result: Data = new ResultObject(),
): Data | Promise<Data> {
  for (let i = index; i < fields.length; i++) {
    const field = fields[i] as PreparedField
    const completed = executeField(execution, field, source, undefined)
    if (isPromise(completed)) {
      return completed.then((value) => {
        setKey(execution, result, field.key, value)
        return executeSerially(execution, fields, source, i + 1, result)
      })
    }
    setKey(execution, result, field.key, completed)
  }
  return result
}

function executeField(execution: Execution, field: PreparedField, source: unknown, parentPath: Path | undefined) {
  const { definition, nodes } = field
  const readsProperty = field.isProperty && isObject(source)
  let value: unknown
  if (readsProperty) {
    try {
      value = source[field.name]
      // A value that is there needs no path and no info, unless it is wrong. Nearly all values of lists are such ones.
      if (field.isLeaf && typeof value !== 'function' && !isPromise(value)) return field.complete(execution, value)
    } catch (error) {
      return fail(execution, field, pathOf(field, parentPath), error)
    }
  }
  const path = pathOf(field, parentPath)
  let info: GraphQLResolveInfo | undefined
  try {
    if (!readsProperty || typeof value === 'function') {
      throwIfCancelled(execution.cancelled)
      info = resolveInfo(execution, field, path)
      const args = field.args
        ? { ...field.args }
        : (field.argsOf?.(execution.variableValues) ??
          getArgumentValues(definition, nodes[0] as FieldNode, execution.variableValues))
      value = (definition.resolve ?? defaultFieldResolver)(source, args, execution.contextValue, info)
    }
  } catch (error) {
    return fail(execution, field, path, error)
  }
  return completeAt(execution, field, value, info, path)
}

// Pothos finds preloaded relations by the identity of this object: paths below the field must have it as `prev`.
const pathOf = ({ key, parentType }: Field, prev: Path | undefined): Path => ({ prev, key, typename: parentType.name })

function resolveInfo(execution: Execution, field: Field, path: Path): GraphQLResolveInfo {
  field.merged ??= field.plan.merge(execution, field.type, field.nodes)
  return {
    fieldName: field.name,
    fieldNodes: field.merged,
    returnType: field.type,
    parentType: field.parentType,
    path,
    schema: execution.schema,
    fragments: execution.fragments,
    rootValue: execution.rootValue,
    operation: execution.operation,
    variableValues: execution.variableValues,
  }
}

/** Completes a value, or a promise of it. Returns null, or a promise of it, if that fails and the type allows null. */
function completeAt(
  execution: Execution,
  slot: Slot,
  value: unknown,
  info: GraphQLResolveInfo | undefined,
  path: Path,
) {
  try {
    const completed = isPromise(value)
      ? value.then((resolved) => slot.complete(execution, resolved, info, path))
      : slot.complete(execution, value, info, path)
    if (!isPromise(completed)) return completed
    return completed.then(undefined, (error) => fail(execution, slot, path, error))
  } catch (error) {
    return fail(execution, slot, path, error)
  }
}

/** The function that completes values of a type: serializes leaves, executes selections. It throws if a value is wrong. */
function completerOf(type: GraphQLOutputType, field: Field): Complete {
  const isNonNull = isNonNullType(type)
  const complete = nullableCompleterOf(isNonNull ? type.ofType : type, field)
  return (execution, value, info, path) => {
    if (value instanceof Error) throw value
    const completed = value === null || value === undefined ? null : complete(execution, value, info, path)
    if (completed === null && isNonNull) throw new Error(`Cannot return null for non-nullable field ${labelOf(field)}.`)
    return completed
  }
}

function nullableCompleterOf(type: GraphQLOutputType, field: Field): Complete {
  if (isListType(type)) return listCompleter(type, field)
  if (isLeafType(type)) return leafCompleter(type)
  if (isAbstractType(type)) return abstractCompleter(type, field)
  return objectCompleter(type as GraphQLObjectType, field)
}

const labelOf = ({ parentType, name }: Field) => `${parentType.name}.${name}`

function leafCompleter(type: GraphQLLeafType): Complete {
  return (_execution, value) => {
    const serialized = type.serialize(value)
    if (serialized !== null && serialized !== undefined) return serialized
    const call = `${inspect(type)}.serialize(${inspect(value)})`
    throw new Error(`Expected \`${call}\` to return non-nullable value, returned: ${inspect(serialized)}`)
  }
}

function listCompleter({ ofType: type }: GraphQLList<GraphQLOutputType>, field: Field): Complete {
  const slot: Slot = { type, nodes: field.nodes, complete: completerOf(type, field) }
  return (execution, list, info, path) => {
    if (!isObject(list) || typeof (list as unknown as Iterable<unknown>)[Symbol.iterator] !== 'function') {
      throw new GraphQLError(`Expected Iterable, but did not find one for field "${labelOf(field)}".`)
    }
    const items: unknown[] = []
    let isPending = false
    try {
      for (const item of list as unknown as Iterable<unknown>) {
        const itemPath = { prev: path, key: items.length, typename: undefined }
        const completed = completeAt(execution, slot, item, info, itemPath)
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

function objectCompleter(type: GraphQLObjectType, { nodes, plan }: Field): Complete {
  let fields: PreparedField[] | undefined
  return (execution, value, info, path) => {
    fields ??= plan.below(execution, type, nodes)
    if (!type.isTypeOf) return executeFields(execution, fields, value, path)
    const prepared = fields
    const executeIf = (isTypeOf: boolean) => {
      if (isTypeOf) return executeFields(execution, prepared, value, path)
      throw new GraphQLError(`Expected value of type "${type.name}" but got: ${inspect(value)}.`, { nodes })
    }
    const isTypeOf = type.isTypeOf(value, execution.contextValue, info as GraphQLResolveInfo)
    return isPromise(isTypeOf) ? isTypeOf.then(executeIf) : executeIf(isTypeOf)
  }
}

function abstractCompleter(type: GraphQLAbstractType, field: Field): Complete {
  const completers = new Map<GraphQLObjectType, Complete>()
  const resolveType = type.resolveType ?? defaultTypeResolver
  return (execution, value, info, path) => {
    const completeAs = (typeName: unknown) => {
      const runtimeType = runtimeTypeOf(type, typeName, execution, field)
      const complete = completers.get(runtimeType) ?? objectCompleter(runtimeType, field)
      completers.set(runtimeType, complete)
      return complete(execution, value, info, path)
    }
    const typeName = resolveType(value, execution.contextValue, info as GraphQLResolveInfo, type)
    return isPromise(typeName) ? typeName.then(completeAs) : completeAs(typeName)
  }
}

/** The object type that `resolveType` named. */
function runtimeTypeOf(type: GraphQLAbstractType, name: unknown, { schema }: Execution, { nodes }: Field) {
  const runtimeType = typeof name === 'string' ? schema.getType(name) : undefined
  if (isObjectType(runtimeType) && schema.isSubType(type, runtimeType)) return runtimeType
  throw new GraphQLError(
    `Abstract type "${type.name}" was resolved to ${inspect(name)}, which is not one of its types.`,
    {
      nodes,
    },
  )
}
