import SchemaBuilder, { type InputRef } from '@pothos/core'
import PrismaPlugin from '@pothos/plugin-prisma'
import SubGraphPlugin from '@pothos/plugin-sub-graph'
import ValidationPlugin from '@pothos/plugin-validation'
import type PrismaTypes from '../../prisma/generated/pothos.js'
import { getDatamodel } from '../../prisma/generated/pothos.js'
import type { Context } from './context.js'
import { invalidRequest } from './errors.js'
import { pathText, wrongIssues } from './input/problems.js'
import { columnOf } from './model.js'
import './plugin.js'
import { batch, ITEMS_PER_UNIT, MAX_BATCH, OBJECTS_PER_UNIT } from './input/rules.js'

/** The `///` comment of a column, for an input that sets it. */
export const columnDescription = (model: keyof PrismaTypes, field: string) => columnOf(model, field).documentation

export const builder = new SchemaBuilder<{
  PrismaTypes: PrismaTypes
  Context: Context
  DefaultFieldNullability: false
  SubGraphs: 'rest' | 'expanded' | 'graphql'
  Scalars: {
    Int64: { Input: bigint; Output: bigint | number }
    DateTime: { Input: Date; Output: Date }
  }
}>({
  plugins: [PrismaPlugin, SubGraphPlugin, ValidationPlugin, 'gateway'],
  defaultFieldNullability: false,
  prisma: {
    client: () => {
      throw new Error('No field asks Prisma: resolvers read and write by statements of our own (see context.ts).')
    },
    dmmf: getDatamodel(),
    exposeDescriptions: true,
  },
  // REST sees every type, without the fields that lead from one resource to another (see expandable and graphqlOnly).
  subGraphs: { defaultForTypes: ['rest', 'expanded', 'graphql'], fieldsInheritFromTypes: true },
  validation: {
    validationError: ({ issues }, args) => invalidRequest(wrongIssues(issues, args, pathText).join(' ')),
  },
})

export type ArgBuilder = Parameters<Parameters<typeof builder.queryField>[1]>[0]['arg']

/** The argument that names one row. */
export const idArg = (arg: ArgBuilder, model: keyof PrismaTypes, column = 'id') =>
  arg({ type: 'Int64', required: true, description: columnDescription(model, column) })

/** The argument that is the body of a REST request. */
export const inputArg = <Shape>(arg: ArgBuilder, type: InputRef<Shape>, description: string) =>
  arg({ type, required: true, description })

/** The argument that is the body of a REST request with many items; `key` names what each of them changes. */
export const batchArg = <Shape>(arg: ArgBuilder, type: InputRef<Shape>, description: string, key?: string) =>
  arg({
    type: [type],
    required: true,
    validate: batch(key),
    batch: { key },
    description: `${description} 1 to ${MAX_BATCH}. All of them take effect, or none. They cost 1 unit per ${ITEMS_PER_UNIT} items begun.`,
  })

/** An argument of a mutation that a client may set to true. In GraphQL, null counts as false: clients send it for what is not set. */
export const flagArg = (arg: ArgBuilder, description: string, takes?: { model: keyof PrismaTypes; key: string }) =>
  arg.boolean({ nullable: true, description, takes, example: true })

/** The option of a type, field or argument that exists on one surface only. */
export const graphqlOnly = { subGraphs: ['graphql' as const] }
export const restOnly = { subGraphs: ['rest' as const, 'expanded' as const] }
/** The option of a field that leads to one row of another type. In REST, a client asks for it by `expand`. */
export const expandable = { subGraphs: ['graphql' as const, 'expanded' as const] }

builder.queryType({
  description: `What can be read. A root field that fails is null; the others keep their data. An operation costs the number of its root fields, the number of objects that it may return divided by ${OBJECTS_PER_UNIT}, or the number of characters in its response keys divided by 262,144, whichever is the most, rounded up.`,
})
builder.mutationType({ description: 'What can be changed. Root fields run one after the other.' })
