import SchemaBuilder, {
  BasePlugin,
  mapInputFields,
  type PothosInputFieldConfig,
  type PothosOutputFieldConfig,
  type SchemaTypes,
} from '@pothos/core'
import { type ConditionalResolver, ifMatchArg, ifMatching, isConditional } from './conditions.js'
import { ApiError, type ErrorCode } from './errors.js'

/** The navigation groups of the reference (specification, Endpoints). */
export const tags = {
  Pets: 'Animals, and the categories that group them.',
  Store: 'Orders, the stock of each animal, and the quota of the calling key.',
}

type Tag = keyof typeof tags

const defaultStatus = { GET: 200, POST: 201, PATCH: 200, DELETE: 204 } as const

/** The REST face of a root field, declared where the field is. Everything REST derives from it. */
export interface Rest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** An OpenAPI path template. What it names are arguments of the field; so are the query parameters. */
  path: string
  tag: Tag
  /** One line for lists of operations. */
  summary: string
  /** By default 201 for POST, 204 (without a body) for DELETE, and else 200. */
  status?: 200 | 201 | 204
  /** Where the created thing is found: a path template over its own fields. */
  location?: string
  /** The operation stays, but may still change: in anything while experimental, in details while in beta. */
  stability?: 'experimental' | 'beta'
  /** Why the reference does not let readers try the operation. */
  noTryIt?: string
  deprecation?: {
    /** When it became deprecated (RFC 9745). */
    since: Date
    /** The setting that holds its sunset date (RFC 8594). */
    sunset: 'PET_BY_ID_SUNSET'
    /** What to use instead: a path template over the same arguments. */
    successor: string
  }
  /** What it costs of the quota on either surface; 1 unless it says otherwise. */
  cost?: 0
  /** Refusals of its own, beyond those that follow from its path, its body and the service as a whole. */
  errors?: ErrorCode[]
}

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      gateway: GatewayPlugin<Types>
    }
    // Required, so that a root field without a decision about REST does not compile.
    export interface QueryFieldOptions<Types, Type, Nullable, Args, ResolveReturnShape> {
      rest: Rest | false
    }
    export interface MutationFieldOptions<Types, Type, Nullable, Args, ResolveReturnShape> {
      rest: Rest | false
    }
    export interface InputFieldOptions {
      /** An explicit null clears the stored value. Elsewhere null is refused, on both surfaces. */
      nullable?: true
      /** A value for examples, in the form of an answer. Types have one of their own. */
      example?: unknown
    }
    export interface FieldOptions {
      /** A value for examples, in the form of an answer. Types have one of their own. */
      example?: unknown
    }
  }
}

declare module 'graphql' {
  interface GraphQLFieldExtensions<_TSource, _TContext, _TArgs> {
    rest?: Rest
    example?: unknown
  }
  interface GraphQLInputFieldExtensions {
    nullable?: true
    example?: unknown
  }
  interface GraphQLArgumentExtensions {
    example?: unknown
  }
}

type NullMap = Map<string, { value: string | null; fields?: { map: NullMap | null } }>

function refuseNulls(values: Record<string, unknown>, map: NullMap) {
  for (const [field, { value: name, fields }] of map) {
    const value = values[field]
    if (value === null && name) throw new ApiError('invalid_request', `${name} must not be null.`)
    if (value && fields?.map) refuseNulls(value as Record<string, unknown>, fields.map)
  }
}

/**
 * Carries `rest`, `nullable` and `example` into the schema's extensions, refuses null where it clears nothing, makes root
 * fields nullable (one that is refused leaves the others their data), and adds `ifMatch` to updates and deletes.
 */
class GatewayPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onInputFieldConfig(config: PothosInputFieldConfig<Types>) {
    const { nullable, example } = config.pothosOptions
    return { ...config, extensions: { ...config.extensions, nullable, example } }
  }

  override onOutputFieldConfig(config: PothosOutputFieldConfig<Types>) {
    const { rest, example } = config.pothosOptions as { rest?: Rest | false; example?: unknown }
    const args =
      rest && isConditional(this.builder, config, rest.method)
        ? { ...config.args, ifMatch: ifMatchArg(this.builder, config) }
        : config.args
    const nulls = mapInputFields(args, this.buildCache, (field) =>
      field.extensions?.nullable ? null : field.name,
    ) as NullMap | null
    const { argMappers, extensions, kind, type } = config
    const checkNulls = (args: Record<string, unknown>) => {
      if (nulls) refuseNulls(args, nulls)
      return args
    }
    return {
      ...config,
      args,
      type: { ...type, nullable: type.nullable || kind === 'Query' || kind === 'Mutation' },
      extensions: {
        ...extensions,
        rest: rest ? { ...rest, status: rest.status ?? defaultStatus[rest.method] } : undefined,
        example,
      },
      argMappers: nulls ? [checkNulls, ...argMappers] : argMappers,
    }
  }

  override wrapResolve(resolve: ConditionalResolver, config: PothosOutputFieldConfig<Types>) {
    return config.args.ifMatch ? ifMatching(this.builder, config, resolve) : resolve
  }
}

SchemaBuilder.registerPlugin('gateway', GatewayPlugin)
