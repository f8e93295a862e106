import SchemaBuilder, { type InputRef } from '@pothos/core'
import PrismaPlugin from '@pothos/plugin-prisma'
import SubGraphPlugin from '@pothos/plugin-sub-graph'
import ValidationPlugin from '@pothos/plugin-validation'
import type { Prisma, PrismaClient } from '../prisma/generated/client/client.js'
import type PrismaTypes from '../prisma/generated/pothos.js'
import { getDatamodel } from '../prisma/generated/pothos.js'
import { ApiError } from './errors.js'
import type { Plan } from './plans.js'
import './plugin.js'

/** `reset` is in Unix seconds. */
export type Quota = { plan: Plan } & Record<'minute' | 'day', { limit: number; remaining: number; reset: number }>

/** The context of resolvers: one for each request. */
export interface Context {
  /** A transaction, where the request has one. */
  prisma: Prisma.TransactionClient
  /** The calling key's own quota, as it stands now. */
  quota(): Promise<Quota>
  /** Where the next page begins: set by a root list that has one. REST sends it as a Link. */
  nextCursor?: bigint
}

const datamodel = getDatamodel()

/** The `///` comment of a column, for an input that sets it. */
export const columnDescription = (model: keyof PrismaTypes, field: string) =>
  datamodel.datamodel.models[model]?.fields.find(({ name }) => name === field)?.documentation

export const builder = new SchemaBuilder<{
  PrismaTypes: PrismaTypes
  Context: Context
  DefaultFieldNullability: false
  SubGraphs: 'rest'
  Scalars: {
    Int64: { Input: bigint; Output: bigint | number }
    DateTime: { Input: Date; Output: Date }
  }
}>({
  plugins: [PrismaPlugin, SubGraphPlugin, ValidationPlugin, 'gateway'],
  defaultFieldNullability: false,
  prisma: {
    client: ({ prisma }) => prisma as PrismaClient,
    dmmf: datamodel,
    exposeDescriptions: true,
    // A resolver that forgets `query` would load nested fields one by one.
    onUnusedQuery: 'error',
  },
  // REST sees every type, without the fields that lead from one resource to another (see graphqlOnly).
  subGraphs: { defaultForTypes: ['rest'], fieldsInheritFromTypes: true },
  validation: {
    validationError: ({ issues }) => {
      const messages = issues.map(({ path = [], message }) => {
        const names = path.map((part) => String(typeof part === 'object' ? part.key : part))
        return `${names.filter((name) => name !== 'input').join('.')} ${message}`
      })
      return new ApiError('invalid_request', `${messages.join('; ')}.`)
    },
  },
})

export type ArgBuilder = Parameters<Parameters<typeof builder.queryField>[1]>[0]['arg']

/** The argument that names one row. */
export const idArg = (arg: ArgBuilder, model: keyof PrismaTypes, column = 'id') =>
  arg({ type: 'Int64', required: true, description: columnDescription(model, column) })

/** The argument that is the body of a REST request. */
export const inputArg = <Shape>(arg: ArgBuilder, type: InputRef<Shape>, description: string) =>
  arg({ type, required: true, description })

/** The option of a field that exists in GraphQL only. */
export const graphqlOnly = { subGraphs: [] }

builder.queryType({
  description: 'What can be read. A root field that is refused is null; the others keep their data.',
})
builder.mutationType({ description: 'What can be changed. Root fields run one after the other.' })
