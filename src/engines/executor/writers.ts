import {
  defaultTypeResolver,
  type GraphQLAbstractType,
  GraphQLError,
  type GraphQLLeafType,
  type GraphQLList,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNullableType,
  isAbstractType,
  isIntrospectionType,
  isLeafType,
  isListType,
  isNonNullType,
  isObjectType,
} from 'graphql'
import { inspect } from 'graphql/jsutils/inspect.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import { addError, countLength, forEach, infoOf } from './execution.js'
import { type Column, createColumn, fail, leafWriterOf, put } from './json.js'
import { writeSelection } from './levels.js'
import { ErrorAt, Places } from './places.js'
import type { Execution, Field, Write } from './plan.js'
import { all, allToFailures, andThen, callAll, Failure, ignoreRejections } from './promises.js'

// Writes values as JSON, those of one field of a level together.

const labelOf = ({ parentType, name }: Field) => `${parentType.name}.${name}`

const isThere = (value: unknown) =>
  value !== null && value !== undefined && !(value instanceof Error) && !(value instanceof Failure)

/** The function that writes values of a type: null, or what is there. A failure becomes null here if the type allows it. */
export function writerOf(type: GraphQLOutputType, field: Field): Write {
  const isNonNull = isNonNullType(type)
  const write = presentWriterOf(isNonNull ? type.ofType : type, field)

  /** Gives the failures their places. */
  function finish(execution: Execution, column: Column, places: Places): Column | Promise<Column> {
    if (!column.failed) return column
    const failed = Array.from(column.failed, ([i, error]) => [i, ErrorAt.of(error, field.nodes, places, i)] as const)
    column.failed = isNonNull ? new Map(failed) : undefined
    if (isNonNull) return column
    const report = (k: number) => {
      const [i, error] = failed[k] as (typeof failed)[0]
      addError(execution, places.at(i), error.located)
    }
    return andThen(forEach(execution, failed.length, report), () => column)
  }

  return (execution, values, places) => {
    if (values.every(isThere))
      return andThen(write(execution, values, places), (column) => finish(execution, column, places))
    const column = createColumn(values.length)
    const there: number[] = []
    let missing: Error | undefined
    for (const [i, value] of values.entries())
      if (isThere(value)) there.push(i)
      else if (value instanceof Error) fail(column, i, value)
      else if (value instanceof Failure) fail(column, i, value.error)
      else if (isNonNull) {
        missing ??= new Error(`Cannot return null for non-nullable field ${labelOf(field)}.`)
        fail(column, i, missing)
      }
    const some = there.map((i) => values[i])
    return andThen(write(execution, some, places.only(there)), (written) => {
      put(column, written, there)
      return finish(execution, column, places)
    })
  }
}

function presentWriterOf(type: GraphQLOutputType, field: Field): Write {
  if (isLeafType(type)) return leavesWriter(type)
  if (isListType(type)) return listsWriter(type, field)
  if (isAbstractType(type)) return abstractWriter(type, field)
  return objectsWriter(type as GraphQLObjectType, field)
}

function leavesWriter(type: GraphQLLeafType): Write {
  const write = leafWriterOf(type)
  return (execution, values) => {
    const column = createColumn(values.length)
    let length = 0
    const done = forEach(execution, values.length, (i) => {
      try {
        const text = write(values[i])
        length += text.length
        column.texts[i] = text
      } catch (error) {
        fail(column, i, error)
      }
    })
    return andThen(done, () => {
      countLength(execution, length)
      return column
    })
  }
}

/** Writes the items of all lists together. */
function listsWriter({ ofType: type }: GraphQLList<GraphQLOutputType>, field: Field): Write {
  const writeItems = writerOf(type, field)
  return (execution, lists, places) => {
    const column = createColumn(lists.length)
    const items: unknown[] = []
    /** Where the items of each list begin. */
    const starts: number[] = []
    for (const [i, list] of lists.entries()) {
      starts.push(items.length)
      try {
        if (typeof list !== 'object' || list === null || !(Symbol.iterator in list))
          throw new GraphQLError(`Expected Iterable, but did not find one for field "${labelOf(field)}".`)
        for (const item of list as Iterable<unknown>) items.push(item)
      } catch (error) {
        ignoreRejections(items.splice(starts[i] as number))
        fail(column, i, error)
      }
    }
    const itemPlaces = new Places((at) => {
      const list = listOf(starts, at)
      return { prev: places.at(list), key: at - (starts[list] as number), typename: undefined }
    })
    starts.push(items.length)
    const written = andThen(allToFailures(items), (items) => writeItems(execution, items, itemPlaces))
    return andThen(written, ({ texts, failed }) => {
      for (const i of lists.keys())
        if (!column.failed?.has(i)) column.texts[i] = `[${texts.slice(starts[i], starts[i + 1]).join()}]`
      for (const [at, error] of [...(failed ?? [])].sort(([a], [b]) => a - b)) fail(column, listOf(starts, at), error)
      return column
    })
  }
}

/** The list with an item: the last one that begins at it or before. */
function listOf(starts: readonly number[], item: number): number {
  let [low, high] = [0, starts.length]
  while (high - low > 1) {
    const middle = (low + high) >> 1
    if ((starts[middle] as number) <= item) low = middle
    else high = middle
  }
  return low
}

function objectsWriter(type: GraphQLObjectType, field: Field): Write {
  if (isIntrospectionType(type)) return introspectionWriter(type, field)
  // Many objects can name the same row.
  const mayRepeat = !isListType(getNullableType(field.type))
  return (execution, values, places) => writeSelection(execution, type, field, values, places, mayRepeat)
}

/** Writes each part of the schema once: fields and arguments share a few types. The worst query takes a third less. */
function introspectionWriter(type: GraphQLObjectType, field: Field): Write {
  return (execution, values, places) => {
    const [first, positions]: [number[], Map<unknown, number>] = [[], new Map()]
    for (const [i, value] of values.entries()) if (!positions.has(value)) positions.set(value, first.push(i) - 1)
    const written = writeSelection(execution, type, field, [...positions.keys()], places.only(first), false)
    return andThen(written, ({ texts, failed }) => {
      const column = createColumn(values.length)
      let length = 0
      for (const [i, value] of values.entries()) {
        const position = positions.get(value) as number
        const text = texts[position] as string
        column.texts[i] = text
        if (first[position] !== i) length += text.length
        if (failed?.has(position)) fail(column, i, failed.get(position))
      }
      countLength(execution, length)
      return column
    })
  }
}

/** Writes the values of each type together. */
function abstractWriter(type: GraphQLAbstractType, field: Field): Write {
  const resolveType = type.resolveType ?? defaultTypeResolver
  return (execution, values, places) => {
    const { schema } = execution.plan.selections
    const column = createColumn(values.length)
    const resolved = values.map((value, i) => {
      try {
        return resolveType(value, execution.contextValue, infoOf(execution, field, places.at(i)), type)
      } catch (error) {
        return new Failure(error)
      }
    })
    return andThen(allToFailures(resolved), (names) => {
      const groups = new Map<GraphQLObjectType, number[]>()
      for (const [i, name] of names.entries()) {
        const named = typeof name === 'string' ? schema.getType(name) : undefined
        if (name instanceof Failure) fail(column, i, name.error)
        else if (isObjectType(named) && schema.isSubType(type, named))
          getOrCreate(groups, named, (): number[] => []).push(i)
        else {
          const message = `Abstract type "${type.name}" was resolved to ${inspect(name)}, which is not one of its types.`
          fail(column, i, new GraphQLError(message, { nodes: field.nodes }))
        }
      }
      const written = callAll(groups, ([named, indexes]) => {
        const some = indexes.map((i) => values[i])
        const part = writeSelection(execution, named, field, some, places.only(indexes), false)
        return andThen(part, (part) => put(column, part, indexes))
      })
      return andThen(all(written), () => column)
    })
  }
}
