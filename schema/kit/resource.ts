import type { ObjectRef } from '@pothos/core'
import type { GraphQLResolveInfo } from 'graphql'
import type { z } from 'zod'
import { type ArgBuilder, batchArg, builder, columnDescription, idArg, inputArg } from './builder.js'
import type { Context, Model, Row } from './context.js'
import { allFound, conflict, found } from './errors.js'
import { getOrCreate } from './get-or-create.js'
import { anyOf } from './input/problems.js'
import { columnOf, keyOf, models } from './model.js'
import type { Rest } from './plugin.js'
import type { Any } from './relations.js'

// A resource is a table whose rows have a path each. `defineResource` knows how rows are read, created, changed and deleted
// on both surfaces. What is special about an operation stands where the operation is named.

/** A column that clients set. Its description, and whether it is required or may be null, follow from the data model. */
interface Column {
  /** Default: the type of the column. An enum needs its own. */
  type?: Any
  validate?: z.ZodType
  /** What a new row gets if the client sends nothing. The column has the same default. */
  preset?: unknown
  /** For the docs, if the value must be unique: one that no row of the sample data has. Default: that of the type's field. */
  example?: unknown
}

interface Resource<M extends Model> {
  model: M
  type: ObjectRef<Any, Any>
  /** The path of its list: `/pets`. */
  path: string
  tag: Rest['tag']
  columns: { [Name in keyof Row<M>]?: Column }
}

/** What is special about an operation. */
interface Special {
  /** In sentences. What is the same for every resource is added: the order of a batch, what a delete returns. */
  description?: string
  rest?: Partial<Rest>
}

interface WithArguments extends Special {
  /** Arguments beside those of every resource. */
  args?: (arg: ArgBuilder) => Record<string, unknown>
}

interface Creation<M extends Model> extends WithArguments {
  /** Creates the row, if there is more to do than that. */
  resolve?: (input: Row<M>, context: Context, args: Any) => Promise<Row<M>>
}

interface BatchCreation<M extends Model> extends WithArguments {
  /** Creates the rows, if there is more to do than that. */
  resolve?: (input: Row<M>[], context: Context, args: Any) => Promise<Row<M>[]>
}

interface Deletion<M extends Model> extends WithArguments {
  /** A row of the sample data that no other example uses. */
  example: object
  /** Deletes the row, if there is more to do than that, and returns it; null if there is none. */
  resolve?: (id: bigint, context: Context, more: Deleting) => Promise<Row<M> | null>
}

interface Deleting {
  args: Any
  info: GraphQLResolveInfo
  /** For rows that others refer to. */
  refusal: Error
}

const TYPES: Record<string, string> = { BigInt: 'Int64' }

const UNCHANGED = 'A field that is not sent stays as it is.'

const withArticle = (noun: string) => `${/^[aeiou]/.test(noun) ? 'an' : 'a'} ${noun}`

/** Inputs by what they are for: all columns of a new row, what changes in one that the path names, or in several. */
type Use = 'create' | 'update' | 'updateMany'

/** The operations of a resource, each as a function that a root field is made with. */
export function defineResource<M extends Model>({ model, type, path, tag, columns }: Resource<M>) {
  const key = keyOf(model).name
  const noun = model.charAt(0).toLowerCase() + model.slice(1)
  const one = withArticle(noun)
  const many = path.slice(path.lastIndexOf('/') + 1)
  const id = `${noun}Id`
  const pathOfOne = `${path}/{${id}}`
  const { fields, uniqueIndexes } = models[model] as (typeof models)[string]
  const referring = fields.flatMap(({ name, kind, isList }) => (kind === 'object' && isList ? name : []))
  const unique = [
    ...fields.flatMap(({ name, isUnique }) => (isUnique ? [[name]] : [])),
    ...uniqueIndexes.map((index) => index.fields),
  ]
  const conflicts: Rest['errors'] = unique.some((names) => names.every((name) => name in columns))
    ? ['conflict']
    : undefined

  function createInput(use: Use) {
    const [name, description] = {
      create: [`New${model}`, `${withArticle(noun).replace('a', 'A')} to create.`],
      update: [`${model}Update`, `What changes in ${one}. ${UNCHANGED}`],
      updateMany: [`${model}Change`, `What changes in which ${noun}. ${UNCHANGED}`],
    }[use] as [string, string]
    return builder.inputRef<Any>(name).implement({
      description,
      fields: (t) => {
        const field = ([name, { type, validate, preset, example }]: [string, Column]) => {
          const column = columnOf(model, name)
          const nullable = use !== 'create' && !column.isRequired ? true : undefined
          const options = {
            type: type ?? TYPES[column.type] ?? column.type,
            validate,
            required: use === 'create' && column.isRequired && !column.hasDefaultValue,
            defaultValue: use === 'create' ? preset : undefined,
            nullable,
            example,
            description: `${columnDescription(model, name)}${nullable ? ' null clears it.' : ''}`,
          }
          return [name, t.field(options as Any)] as const
        }
        const own = t.field({ type: 'Int64', required: true, description: columnDescription(model, key) })
        const settable = Object.entries(columns as Record<string, Column>).map(field)
        return Object.fromEntries(use === 'updateMany' ? [[key, own], ...settable] : settable)
      },
    })
  }
  const inputs = new Map<Use, ReturnType<typeof createInput>>()
  const inputOf = (use: Use) => getOrCreate(inputs, use, () => createInput(use))

  return {
    get: ({ description = `One ${noun}.`, rest }: Special = {}) => {
      return (t: Any) =>
        t.field({
          type,
          description,
          rest: { method: 'GET', path: pathOfOne, tag, summary: `Get ${one}`, ...rest },
          args: { [id]: idArg(t.arg, model, key) },
          resolve: async (_root: unknown, args: Any, { reads }: Context) =>
            found(await reads.row(model, key as never, args[id]), noun, args[id]),
        })
    },

    create: ({ description = `Creates ${one}.`, rest, args, resolve }: Creation<M> = {}) => {
      const input = inputOf('create')
      const createRow = resolve ?? ((input, { writes }) => writes.create(model, input))
      const location = `${path}/{${key}}`
      return (t: Any) =>
        t.field({
          type,
          description,
          rest: { method: 'POST', path, tag, summary: `Create ${one}`, location, errors: conflicts, ...rest },
          args: { input: inputArg(t.arg, input, `The ${noun} to create.`), ...args?.(t.arg) },
          resolve: (_root: unknown, { input, ...args }: Any, context: Context) => createRow(input, context, args),
        })
    },

    createMany: ({ description = `Creates ${many}.`, rest, args, resolve }: BatchCreation<M> = {}) => {
      const input = inputOf('create')
      const createRows = resolve ?? ((input, { writes }) => writes.createMany(model, input))
      return (t: Any) =>
        t.field({
          type: [type],
          description: `${description} Returns them in the order of the items.`,
          rest: {
            method: 'POST',
            path: `${path}/batch`,
            tag,
            summary: `Create several ${many}`,
            errors: conflicts,
            ...rest,
          },
          args: { input: batchArg(t.arg, input, `The ${many} to create.`), ...args?.(t.arg) },
          resolve: (_root: unknown, { input, ...args }: Any, context: Context) => createRows(input, context, args),
        })
    },

    update: ({ description = `Changes the fields of ${one} that are sent.`, rest }: Special = {}) => {
      const input = inputOf('update')
      return (t: Any) =>
        t.field({
          type,
          description,
          rest: { method: 'PATCH', path: pathOfOne, tag, summary: `Update ${one}`, errors: conflicts, ...rest },
          args: { [id]: idArg(t.arg, model, key), input: inputArg(t.arg, input, 'What changes.') },
          resolve: async (_root: unknown, { input, ...args }: Any, { writes }: Context) =>
            found(await writes.update(model, { [key]: args[id], ...input }), noun, args[id]),
        })
    },

    updateMany: ({ description = `Changes the fields of ${many} that are sent.`, rest }: Special = {}) => {
      const input = inputOf('updateMany')
      return (t: Any) =>
        t.field({
          type: [type],
          description: `${description} Returns the ${many} in the order of the items.`,
          rest: {
            method: 'PATCH',
            path: `${path}/batch`,
            tag,
            summary: `Update several ${many}`,
            errors: conflicts,
            ...rest,
          },
          args: { input: batchArg(t.arg, input, `What changes in which ${many}.`, key) },
          resolve: async (_root: unknown, { input }: Any, { writes }: Context) => {
            const ids = input.map((item: Any) => item[key])
            return allFound(await writes.updateMany(model, input), noun, ids)
          },
        })
    },

    delete: ({ description = `Deletes ${one}.`, rest, example, args, resolve }: Deletion<M>) => {
      const what = anyOf(referring) || 'rows that refer to it'
      const refusal = (id: bigint) => conflict(`${model} ${id} has ${what}. Delete or change them first.`)
      const deleteRow =
        resolve ?? ((id, { writes }, { refusal }) => writes.delete(model, { [key]: id } as Any, refusal))
      const errors: Rest['errors'] = referring.length > 0 || resolve ? ['conflict'] : undefined
      return (t: Any) =>
        t.field({
          type,
          description: `${description} GraphQL returns the deleted ${noun}.`,
          rest: { method: 'DELETE', path: pathOfOne, tag, summary: `Delete ${one}`, errors, ...rest },
          args: { [id]: idArg(t.arg, model, key), ...args?.(t.arg) },
          example,
          resolve: async (_root: unknown, args: Any, context: Context, info: GraphQLResolveInfo) =>
            found(await deleteRow(args[id], context, { args, info, refusal: refusal(args[id]) }), noun, args[id]),
        })
    },
  }
}
