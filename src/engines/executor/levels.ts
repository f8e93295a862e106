import { defaultFieldResolver, type FieldNode, type GraphQLObjectType, getArgumentValues } from 'graphql'
import { countLength, forEach, infoOf, throwIfCancelled } from './execution.js'
import { type Column, createColumn, fail, failedColumn } from './json.js'
import type { Path, Places } from './places.js'
import type { Data, Execution, Field, PlannedField } from './plan.js'
import { all, allToFailures, andThen, callAll, Failure, ignoreRejections, isPromise, toFailure } from './promises.js'

// A level is all objects that one selection is executed for: the items of all its lists. Each field of a level is resolved
// and written for all of them before what they are part of is joined, so that a field which says so is resolved by one call,
// with one statement. What is written is JSON, from the inside out: nothing walks the result again.

/** A field of all objects; without a label, several fields that are properties, with their labels. */
interface Part {
  column: Column
  label?: string
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
  let runs: readonly (readonly PlannedField[])[]
  try {
    runs = execution.plan.below(execution.variableValues, type, nodes).runs
  } catch (error) {
    // @skip or @include got null.
    return failedColumn(sources.length, error)
  }
  const write = (field: PlannedField) => writePart(execution, field, sources, places)
  const separately = (fields: readonly PlannedField[]) => all(callAll(fields, write))
  const join = (parts: readonly (Part | readonly Part[])[]) => joined(execution, parts, sources.length)
  const [run] = runs as [readonly PlannedField[]]
  if (runs.length === 1 && run[0]?.from === 'property') {
    const whole = writeProperties(execution, run, sources, { isWhole: true, mayRepeat })
    return andThen(whole, (column) => column ?? andThen(separately(run), join))
  }
  const written = callAll(runs, (run) => {
    const [first] = run as [PlannedField]
    if (first.from !== 'property') return write(first)
    const texts = writeProperties(execution, run, sources, { isWhole: false, mayRepeat: false })
    return andThen(texts, (column) => (column ? { column } : separately(run)))
  })
  return andThen(all<Part | readonly Part[]>(written), join)
}

const writePart = (execution: Execution, field: PlannedField, sources: readonly unknown[], places: Places) =>
  andThen(writeField(execution, field, sources, places), (column): Part => ({ column, label: field.label }))

/** Joins the parts of each object. One with a part that failed has failed. */
function joined(execution: Execution, written: readonly (Part | readonly Part[])[], count: number) {
  // Only fields that were no plain properties come in lists.
  const parts = written.some(Array.isArray) ? written.flat() : (written as readonly Part[])
  const column = createColumn(count)
  const join = (i: number) => {
    let text = ''
    for (const { column, label } of parts) {
      const written = column.texts[i] as string
      if (label === undefined) text = joinFields(text, written)
      else if (!execution.omitNulls || written !== 'null') text = joinFields(text, label + written)
    }
    column.texts[i] = `{${text}}`
  }
  return andThen(forEach(execution, count, join), () => {
    for (const part of parts) for (const [i, error] of part.column.failed ?? []) fail(column, i, error)
    return column
  })
}

const joinFields = (some: string, more: string) => (some === '' || more === '' ? some + more : `${some},${more}`)

/**
 * Writes adjacent fields that are properties, which nearly all are. Returns undefined if something is no plain value that
 * its type allows: then each field is written on its own.
 *
 * @param isWhole they are all that is selected: the texts are objects
 * @param mayRepeat many objects can be the same one
 */
function writeProperties(
  execution: Execution,
  fields: readonly PlannedField[],
  sources: readonly unknown[],
  { isWhole, mayRepeat }: { isWhole: boolean; mayRepeat: boolean },
): Column | undefined | Promise<Column | undefined> {
  const texts: string[] = new Array(sources.length)
  const known = mayRepeat ? new Map<unknown, string>() : undefined
  let length = 0
  let isPlain = true
  const write = (i: number) => {
    if (!isPlain) return
    const source = sources[i] as Data
    const text = known?.get(source) ?? propertiesOf(source, fields, execution.omitNulls)
    isPlain = text !== undefined
    if (text === undefined) return
    known?.set(source, text)
    texts[i] = isWhole ? `{${text}}` : text
    length += text.length
  }
  return andThen(forEach(execution, sources.length, write), () => {
    if (!isPlain) return
    countLength(execution, length)
    return { texts, failed: undefined }
  })
}

function propertiesOf(source: Data, fields: readonly PlannedField[], omitNulls: boolean): string | undefined {
  let text = ''
  try {
    for (const { name, label, leaf, isNonNull, constant } of fields) {
      const value = source[name]
      let json = 'null'
      if (constant) json = constant
      else if (value === null || value === undefined) {
        if (isNonNull) return
        if (omitNulls) continue
      } else if (typeof value === 'function' || value instanceof Error || isPromise(value))
        return ignoreRejections(value)
      else json = leaf(value)
      text += text === '' ? label + json : `,${label}${json}`
    }
  } catch {
    return
  }
  return text
}

/** Resolves a field for all objects, and writes its values. */
export function writeField(execution: Execution, field: PlannedField, sources: readonly unknown[], places: Places) {
  countLength(execution, sources.length * field.label.length)
  const at = places.below(field.key, field.parentType.name)
  const values =
    field.from === 'all'
      ? andThen(resolveAll(execution, field, sources, at), allToFailures)
      : resolveEach(execution, field, sources, at)
  return andThen(values, (values) => field.write(execution, values, at))
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
      // It may reject before all are called.
      values.push(toFailure(resolve(execution, field, sources[i], places.at(i))))
    } catch (error) {
      if (execution.ended) throw error
      values.push(new Failure(error))
    }
  }
  return andThen(forEach(execution, sources.length, resolveNext), () => all(values))
}
