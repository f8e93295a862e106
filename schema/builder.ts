import SchemaBuilder from '@pothos/core'
import PrismaPlugin from '@pothos/plugin-prisma'
import SubGraphPlugin from '@pothos/plugin-sub-graph'
import ValidationPlugin from '@pothos/plugin-validation'
import type { PrismaClient } from '../prisma/generated/client/client.js'
import type PrismaTypes from '../prisma/generated/pothos.js'
import { getDatamodel } from '../prisma/generated/pothos.js'
import { ApiError } from './errors.js'
import './plugin.js'

export interface QuotaWindow {
  limit: number
  remaining: number
  /** Unix seconds. */
  reset: number
}

export interface Quota {
  plan: 'Free' | 'Pro' | 'Business' | 'Enterprise'
  minute: QuotaWindow
  day: QuotaWindow
}

/** What resolvers are given for one request. */
export interface Context {
  prisma: PrismaClient
  /** The calling key's own quota, as it stands now. */
  quota(): Promise<Quota>
  /** A root list tells here whether a further page follows. REST makes a Link of it. */
  page?(more: boolean): void
}

const datamodel = getDatamodel()

/** The `///` comment of a column, for an input that sets it. */
export const documented = (model: keyof PrismaTypes, field: string) =>
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
    client: ({ prisma }) => prisma,
    dmmf: datamodel,
    exposeDescriptions: true,
    // A resolver that forgets `query` would load nested fields one by one.
    onUnusedQuery: 'error',
  },
  // REST sees every type, without the fields that lead from one resource to another (see graphOnly).
  subGraphs: { defaultForTypes: ['rest'], fieldsInheritFromTypes: true },
  validation: {
    validationError: ({ issues }) => {
      const said = issues.map(({ path = [], message }) => {
        const names = path.map((part) => String(typeof part === 'object' ? part.key : part))
        return `${names.filter((name) => name !== 'input').join('.')} ${message}`
      })
      return new ApiError('invalid_request', `${said.join('; ')}.`)
    },
  },
})

/** The option of a field that GraphQL has and REST has not. */
export const graphOnly = { subGraphs: [] }

builder.queryType({
  description: 'What can be read. A root field that is refused is null; the others keep their data.',
})
builder.mutationType({ description: 'What can be changed. Root fields run one after the other.' })
