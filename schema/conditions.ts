import type { PothosOutputFieldConfig } from '@pothos/core'
import {
  defaultFieldResolver,
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  getNamedType,
  getNullableType,
  isListType,
} from 'graphql'
import type { Prisma } from '../prisma/generated/client/client.js'
import { getDatamodel } from '../prisma/generated/pothos.js'
import type { Context, Model } from './context.js'
import { ApiError } from './errors.js'
import { createEtag, type EntityTags, matchesStrongly } from './etag.js'
import { entityTags } from './validation.js'

// Stored types have an entity tag, and updates and deletes can depend on it. Both follow from the type's declaration.

// biome-ignore lint/suspicious/noExplicitAny: a plugin's builder has the type of no particular schema
type Builder = PothosSchemaTypes.SchemaBuilder<any>
// biome-ignore lint/suspicious/noExplicitAny: a plugin's builder has the type of no particular schema
type FieldConfig = PothosOutputFieldConfig<any>
type Row = Record<string, unknown>

const { models } = getDatamodel().datamodel

/** The model whose rows a type shows, if it is stored. */
const modelOf = ({ configStore }: Builder, type: string) =>
  configStore.getTypeConfig(type).extensions?.pothosPrismaModel as string | undefined

/** The fields of a type that REST shows, as they are declared: without what plugins wrap around their resolvers. */
const restFields = ({ configStore }: Builder, type: string) =>
  [...configStore.getFields(type, 'Object').values()].filter(
    ({ pothosOptions }) => pothosOptions.subGraphs?.includes('rest') ?? true,
  ) as FieldConfig[]

function serialize(type: GraphQLOutputType, value: unknown): unknown {
  const bare = getNullableType(type)
  if (isListType(bare)) return Array.from(value as unknown[], (item) => serialize(bare.ofType, item))
  return (bare as GraphQLLeafType).serialize(value)
}

/** The tag of a row with its relations: that of its REST representation. */
async function etagOf(builder: Builder, row: Row, type: GraphQLObjectType, context: object, info: GraphQLResolveInfo) {
  const representation: Row = {}
  for (const { name, resolve } of restFields(builder, type.name)) {
    const value = await (resolve ?? defaultFieldResolver)(row, {}, context, { ...info, fieldName: name })
    const field = type.getFields()[name]
    if (field && value !== null && value !== undefined) representation[name] = serialize(field.type, value)
  }
  return createEtag(JSON.stringify(representation))
}

/** Adds the field `etag` to every type that is stored. */
export function addEtags(builder: Builder) {
  for (const { name } of builder.configStore.typeConfigs.values()) {
    const model = modelOf(builder, name)
    if (model)
      builder.prismaObjectField(
        model as never,
        'etag' as never,
        (t) =>
          t.field({
            type: 'String',
            description:
              'The `ETag` of the REST representation, which changes whenever the representation does. See `ifMatch`.',
            subGraphs: ['graphql'],
            resolve: (row: Row, _args: object, context: object, info: GraphQLResolveInfo) =>
              etagOf(builder, row, info.parentType, context, info),
          }) as never,
      )
  }
}

const keyOf = (model: string) => models[model]?.fields.find(({ isId }) => isId)?.name

const typeOf = ({ configStore }: Builder, { type }: FieldConfig) =>
  type.kind === 'Object' ? configStore.getTypeConfig(type.ref).name : ''

/** The argument of root fields that update or delete one row. */
export function conditionArgs(builder: Builder, config: FieldConfig, method: string): FieldConfig['args'] {
  if (!['PATCH', 'DELETE'].includes(method) || !modelOf(builder, typeOf(builder, config))) return {}
  const { ifMatch } = builder.args((t) => ({
    ifMatch: t.string({
      validate: entityTags,
      description:
        'An `etag`, or several separated by commas, or `*` for any. If the row has none of them, nothing changes and the error is `precondition_failed`.',
    }),
  }))
  return { ifMatch: ifMatch.getConfig('ifMatch', config.name, builder.configStore.getTypeConfig(config.parentType)) }
}

// biome-ignore lint/suspicious/noExplicitAny: a plugin's builder has the type of no particular schema
export type ConditionalResolver = GraphQLFieldResolver<unknown, any, any>

/**
 * Wraps the resolver of an update or delete: with `ifMatch`, it runs only if the tag of the row is among those given, in the
 * transaction that has compared them.
 */
export function ifMatching(builder: Builder, config: FieldConfig, resolve: ConditionalResolver): ConditionalResolver {
  const model = modelOf(builder, typeOf(builder, config)) as Model & string
  const key = keyOf(model) as never
  // The last one in the path names the row.
  const id = /\{(\w+)\}$/.exec(config.extensions?.rest?.path ?? '')?.[1] as string
  return (root, args: Row & { ifMatch?: EntityTags }, context: Context, info) => {
    const { ifMatch } = args
    if (!ifMatch) return resolve(root, args, context, info)
    const assertMatch = async (row: object | null) => {
      const type = getNamedType(info.returnType) as GraphQLObjectType
      if (!row || !matchesStrongly(ifMatch, await etagOf(builder, row as Row, type, context, info)))
        throw new ApiError('precondition_failed')
    }
    const { prisma, reads } = context
    const resolveIfMatching = async (prisma: Prisma.TransactionClient) => {
      const inside = { ...context, prisma, reads: reads.inside(prisma) }
      await assertMatch(await inside.reads.lock(model, key, args[id]))
      return resolve(root, args, inside, info)
    }
    // If many clients change one row, those with a stale tag do not wait for its lock.
    return reads
      .row(model, key, args[id])
      .then(assertMatch)
      .then(() => prisma.$transaction(resolveIfMatching))
  }
}
