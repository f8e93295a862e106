import { defaultFieldResolver, type FieldNode, type GraphQLObjectType, getArgumentValues } from 'graphql'
import { type Column, createColumn, fail, failedColumn } from './columns.js'
import { forEach, infoOf, inTurn, STRIDE, take, throwIfCancelled } from './execution.js'
import type { Path, Places } from './places.js'
import type { Data, Execution, Field, PlannedField } from './plan.js'
import { abandon, after, Failure, isPromise, settled } from './promises.js'

// A level is all objects that one selection is executed for: the items of all its lists. Each field of a level is resolved
// and written for all of them before what they are part of is joined, so that a field which says so is resolved by one call,
// with one statement. What is written is JSON, from the inside out: nothing walks the result again.

/** A field of all objects, or several that are properties, with their labels. */
interface Part {
  column: Column
  label: string
}

/**
 * Executes what a field selects from all objects of a level. Its fields are resolved concurrently.
 *
 * @param mayRepeat many objects can be the same one
 */
export function writeSelection(
  execution: Execution,
  type: GraphQLObjectType,
  { nodes }: Field,
  sources: readonly unknown[],
  places: Places,
  mayRepeat: boolean,
): Column | Promise<Column> {
  if (sources.length === 0) return createColumn(0)
  let fields: readonly PlannedField[]
  try {
    fields = execution.plan.below(execution.variableValues, type, nodes)
  } catch (error) {
    // @skip or @include got null.
    return failedColumn(sources.length, error)
  }
  const parts: (Part | Promise<Part>)[] = []
  const addField = (field: PlannedField) => {
    const written = writeField(execution, field, sources, places)
    parts.push(after(written, (column): Part => ({ column, label: field.label })))
  }
  try {
    for (let first = 0, end = 0; first < fields.length; first = end) {
      while (fields[end]?.from === 'property') end++
      const run = fields.slice(first, end)
      if (run.length === 0) addField(fields[end++] as PlannedField)
      else {
        const isAll = run.length === fields.length
        const texts = writeProperties(execution, run, sources, isAll && mayRepeat)
        if (texts) parts.push({ column: { texts, failed: undefined }, label: '' })
        else run.forEach(addField)
      }
    }
  } catch (error) {
    // The execution has ended.
    abandon(parts)
    throw error
  }
  const join = (parts: readonly Part[]) => joined(execution, parts, sources.length)
  return parts.some(isPromise) ? Promise.all(parts).then(join) : join(parts as Part[])
}

/** Joins the parts of each object. One with a part that failed has failed. */
function joined({ omitNulls }: Execution, parts: readonly Part[], count: number): Column {
  const column = createColumn(count)
  for (let i = 0; i < count; i++) {
    let text = ''
    for (const { column, label } of parts) {
      const written = column.texts[i] as string
      if (label === '') text += written
      else if (!omitNulls || written !== 'null') text += `,${label}${written}`
    }
    column.texts[i] = `{${text.slice(1)}}`
  }
  for (const part of parts) for (const [i, error] of part.column.failed ?? []) fail(column, i, error)
  return column
}

/**
 * Writes adjacent fields that are properties, which nearly all are. Returns undefined if something is no plain value that
 * its type allows: then each field is written on its own.
 *
 * @param mayRepeat many objects can be the same one
 */
function writeProperties(
  execution: Execution,
  fields: readonly PlannedField[],
  sources: readonly unknown[],
  mayRepeat: boolean,
): string[] | undefined {
  const texts: string[] = new Array(sources.length)
  const known = mayRepeat ? new Map<unknown, string>() : undefined
  let length = 0
  try {
    for (let i = 0; i < sources.length; i++) {
      const source = sources[i] as Data
      const text = known?.get(source) ?? propertiesOf(source, fields, execution.omitNulls)
      if (text === undefined) return
      known?.set(source, text)
      texts[i] = text
      length += text.length
    }
  } catch {
    return
  }
  take(execution, length)
  return texts
}

function propertiesOf(source: Data, fields: readonly PlannedField[], omitNulls: boolean): string | undefined {
  let text = ''
  for (const { name, label, leaf, isNonNull, constant } of fields) {
    const value = source[name]
    if (constant) text += `,${label}${constant}`
    else if (value === null || value === undefined) {
      if (isNonNull) return
      if (!omitNulls) text += `,${label}null`
    } else if (typeof value === 'function' || value instanceof Error || isPromise(value)) return abandon(value)
    else text += `,${label}${leaf(value)}`
  }
  return text
}

/** Resolves a field for all objects, and writes its values. */
export function writeField(
  execution: Execution,
  field: PlannedField,
  sources: readonly unknown[],
  places: Places,
): Column | Promise<Column> {
  const at = places.below(field.key, field.parentType.name)
  const write = (values: readonly unknown[]) =>
    values.length < STRIDE
      ? field.write(execution, values, at)
      : inTurn(execution, () => field.write(execution, values, at))
  const values =
    field.from === 'all' ? resolveAll(execution, field, sources, at) : resolveEach(execution, field, sources, at)
  return after(after(values, settled), write)
}

function resolve(execution: Execution, field: PlannedField, source: unknown, path: Path | undefined): unknown {
  throwIfCancelled(execution)
  const { contextValue, variableValues } = execution
  const { args, resolve = defaultFieldResolver } = field.definition
  const given = args.length > 0 ? getArgumentValues(field.definition, field.nodes[0] as FieldNode, variableValues) : {}
  return resolve(source, given, contextValue, infoOf(execution, field, path))
}

/** Calls the resolver once. */
function resolveAll(execution: Execution, field: PlannedField, sources: readonly unknown[], places: Places) {
  const failed = (error: unknown): readonly unknown[] => {
    if (execution.ended) throw execution.ended
    return sources.map(() => new Failure(error))
  }
  try {
    const values = resolve(execution, field, sources, places.at(0)) as readonly unknown[]
    return isPromise(values) ? (values as Promise<readonly unknown[]>).then(undefined, failed) : values
  } catch (error) {
    return failed(error)
  }
}

/** Calls the resolver for one object after the other. */
function resolveEach(execution: Execution, field: PlannedField, sources: readonly unknown[], places: Places) {
  const values: unknown[] = []
  const resolveNext = (): void => {
    const i = values.length
    try {
      const value = resolve(execution, field, sources[i], places.at(i))
      // It may reject before all are called.
      values.push(isPromise(value) ? value.then(undefined, (error) => new Failure(error)) : value)
      abandon(value)
    } catch (error) {
      if (execution.ended) throw error
      values.push(new Failure(error))
    }
  }
  return after(forEach(execution, sources.length, resolveNext), () => values)
}
