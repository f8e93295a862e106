import type { PothosOutputFieldConfig } from '@pothos/core'
import {
  type GraphQLFieldResolver,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  getNamedType,
  getNullableType,
  isListType,
} from 'graphql'
import type { Context, Model } from './context.js'
import { ApiError } from './errors.js'
import { createEtag, type EntityTags, matchesStrongly, matchesWeakly } from './etag.js'
import { getOrCreate } from './get-or-create.js'
import { entityTags } from './input/rules.js'
import { keyOf } from './model.js'
import type { Any } from './relations.js'

// Stored types have an entity tag, and updates and deletes can depend on it. Both follow from the type's declaration.

// A plugin's builder has the type of no particular schema.
type Builder = PothosSchemaTypes.SchemaBuilder<Any>
type FieldConfig = PothosOutputFieldConfig<Any>
type Row = Record<string, unknown>

/** The model whose rows a type shows, if it is stored. */
export const modelOf = ({ configStore }: Builder, type: string) =>
  configStore.getTypeConfig(type).extensions?.pothosPrismaModel as string | undefined

interface Represented {
  name: string
  type: GraphQLOutputType
  resolve: FieldConfig['resolve']
}

const represented = new WeakMap<GraphQLObjectType, Represented[]>()

/** The fields of a type that REST shows, as they are declared: without what plugins wrap around their resolvers. */
function restFields({ configStore }: Builder, object: GraphQLObjectType): Represented[] {
  const declared = [...configStore.getFields(object.name, 'Object').values()]
  return declared.flatMap(({ name, resolve, pothosOptions }) => {
    const { type } = object.getFields()[name] ?? {}
    return type && (pothosOptions.subGraphs?.includes('rest') ?? true) ? [{ name, type, resolve }] : []
  }) as Represented[]
}

function serialize(type: GraphQLOutputType, value: unknown): unknown {
  const bare = getNullableType(type)
  if (isListType(bare)) return Array.from(value as unknown[], (item) => serialize(bare.ofType, item))
  return (bare as GraphQLLeafType).serialize(value)
}

/** The tags of rows that were read, each computed once. */
const tags = new WeakMap<Row, string>()

/** The tag of a row: that of its REST representation, whose fields do not wait for anything. */
function etagOf(builder: Builder, row: Row, type: GraphQLObjectType, context: object, info: GraphQLResolveInfo) {
  return getOrCreate(tags, row, () => {
    const representation: Row = {}
    for (const { name, type: ofField, resolve } of getOrCreate(represented, type, () => restFields(builder, type))) {
      const value = resolve ? resolve(row, {}, context, { ...info, fieldName: name }) : row[name]
      if (value !== null && value !== undefined) representation[name] = serialize(ofField, value)
    }
    return createEtag(JSON.stringify(representation))
  })
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
            weight: 10,
            resolve: (row: Row, _args: object, context: object, info: GraphQLResolveInfo) =>
              etagOf(builder, row, info.parentType, context, info),
          }) as never,
      )
  }
}

const modelOfField = (builder: Builder, { type }: FieldConfig) =>
  type.kind === 'Object' ? modelOf(builder, builder.configStore.getTypeConfig(type.ref).name) : undefined

/** The argument of root fields that update or delete one row. */
export function conditionArgs(builder: Builder, config: FieldConfig, method: string): FieldConfig['args'] {
  if (!['PATCH', 'DELETE'].includes(method) || !modelOfField(builder, config)) return {}
  const { ifMatch } = builder.args((t) => ({
    ifMatch: t.string({
      validate: entityTags,
      description:
        'An `etag`, or several separated by commas, or `*` for any. If the row has none of them, nothing changes and the error is `precondition_failed`.',
    }),
  }))
  return { ifMatch: ifMatch.getConfig('ifMatch', config.name, builder.configStore.getTypeConfig(config.parentType)) }
}

/** Of a tag that would match if it were not weak. */
const WEAK =
  'The ETag is right, but weak (W/"…"), and If-Match takes no weak one (RFC 9110). A proxy that compresses makes it so: read the item with "Accept-Encoding: identity", or its `etag` by GraphQL.'

export type ConditionalResolver = GraphQLFieldResolver<unknown, Any, Any>

/**
 * Wraps the resolver of an update or delete: with `ifMatch`, it runs only if the tag of the row is among those given, in the
 * transaction that has compared them.
 */
export function ifMatching(builder: Builder, config: FieldConfig, resolve: ConditionalResolver): ConditionalResolver {
  const model = modelOfField(builder, config) as Model & string
  const key = keyOf(model).name as never
  const id = config.extensions?.rest?.idArgument as string
  return (root, args: Row & { ifMatch?: EntityTags }, context: Context, info) => {
    const { ifMatch } = args
    if (!ifMatch) return resolve(root, args, context, info)
    const assertMatch = async (row: object | null) => {
      const type = getNamedType(info.returnType) as GraphQLObjectType
      if (!row)
        throw new ApiError('precondition_failed', 'It is gone: somebody else has deleted it, or it never existed.')
      const etag = etagOf(builder, row as Row, type, context, info)
      if (!matchesStrongly(ifMatch, etag))
        throw new ApiError('precondition_failed', matchesWeakly(ifMatch, etag) ? WEAK : undefined)
    }
    const { reads, transaction } = context
    const resolveIfMatching = async (inside: Pick<Context, 'reads' | 'writes'>) => {
      await assertMatch(await inside.reads.lock(model, args[id]))
      return resolve(root, args, { ...context, ...inside, transaction: (work) => work(inside) } satisfies Context, info)
    }
    // If many clients change one row, those with a stale tag do not wait for its lock.
    return reads
      .row(model, key, args[id])
      .then(assertMatch)
      .then(() => transaction(resolveIfMatching))
  }
}
