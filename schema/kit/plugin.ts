import SchemaBuilder, {
  BasePlugin,
  type PothosInputFieldConfig,
  type PothosOutputFieldConfig,
  type SchemaTypes,
} from '@pothos/core'
import type { GraphQLObjectType, GraphQLResolveInfo } from 'graphql'
import { type ConditionalResolver, conditionArgs, ifMatching } from './conditions.js'
import type { ErrorCode } from './errors.js'
import { type Values, withoutNulls } from './input/values.js'

/** A navigation group of the reference. Groups stand in the order of the operations that have them. */
export interface Tag {
  name: string
  description: string
}

const defaultStatus = { GET: 200, POST: 201, PATCH: 200, DELETE: 204 } as const

/** What the cost of a list depends on. */
export interface ListCost {
  /** The argument with the ids of its items, or with the items. */
  ids?: string
  isBatch?: true
  /** It is a connection: `first` or `last` is its limit. */
  isConnection?: true
  /** What limits it, if that is not `limit`. */
  limit?: { argument: string; default: number; max: number }
  /** It has no limit: so many items at most, and so many as a rule, which is what it is weighed by. */
  items?: { max: number; usual: number }
}

/** The REST operation of a root field, declared where the field is. Everything in REST derives from it. */
export interface Rest {
  method: 'GET' | 'POST' | 'PATCH' | 'DELETE'
  /** An OpenAPI path template. What it names are arguments of the field; so are the query parameters. */
  path: string
  tag: Tag
  /** One line for lists of operations. */
  summary: string
  /** Default: 201 for POST, 204 (without a body) for DELETE, otherwise 200. */
  status?: 200 | 201 | 204
  /** The URL of the created resource: a path template over its own fields. */
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
  /** What it costs of the quota on either surface; default: 1. */
  cost?: 0
  /** Error codes in addition to those that follow from its path, its body and the service as a whole. */
  errors?: ErrorCode[]
}

/** Keywords of JSON Schema. */
type Bounds = Partial<
  Record<'minimum' | 'maximum' | 'minLength' | 'maxLength' | 'maxItems', number> & Record<'pattern', string>
>

/** Options of a field that become its extensions. */
interface FieldExtensions {
  /** For the OpenAPI document: every result has it, but its schema does not require it. */
  optional?: true
  /** For the OpenAPI document, of a number or text that no input sets. Default: those of the input that sets it. */
  bounds?: Bounds
  /**
   * A value for examples, in the form of an answer. Types have one of their own. That of a delete is a row of the
   * sample data that no other example uses.
   */
  example?: unknown
  /** What the cost of a list depends on. */
  list?: ListCost
  /**
   * What computing a leaf costs, in reads of a property. It must say so unless it is one. It is computed once for each
   * object: under a further alias it counts as a property.
   */
  weight?: number
}

/** Options of an argument or an input field that become its extensions. */
interface InputExtensions {
  /**
   * An explicit null clears the stored value. Without this option, null is refused on both surfaces, except in an
   * optional argument of a query, where it counts as absent.
   */
  nullable?: true
  /** What a request costs more that sets it to true. */
  units?: 1
  /** If it is true, the request also changes rows of this model: those that the items of its input name by `key`. */
  takes?: { model: string; key: string }
  /** It is the list of items of a batch, of which each names what it changes by `key`. */
  batch?: { key?: string }
  /** A value for examples, as in a response. Default: the example of the type. */
  example?: unknown
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
    export interface InputFieldOptions extends InputExtensions {}
    export interface FieldOptions extends FieldExtensions {}
  }
}

declare module 'graphql' {
  interface GraphQLFieldExtensions<_TSource, _TContext, _TArgs> extends FieldExtensions {
    rest?: Rest & {
      /** The argument that names the row. */
      idArgument?: string
    }
    /** Its resolver is called once for all objects of a level, with an array of them, and returns an array of values. */
    resolvesAll?: true
  }
  interface GraphQLInputFieldExtensions extends InputExtensions {}
  interface GraphQLArgumentExtensions extends InputExtensions {
    /** On some surfaces only. */
    subGraphs?: string[]
  }
}

const completeRest = (rest: Rest) => ({
  ...rest,
  status: rest.status ?? defaultStatus[rest.method],
  // The last one in the path names the row.
  idArgument: /\{(\w+)\}$/.exec(rest.path)?.[1],
})

/**
 * Carries the options above into the schema's extensions, leaves out or refuses null where it clears nothing, makes root
 * fields nullable (if one fails, the others keep their data), and adds `ifMatch` to updates and deletes.
 */
class GatewayPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onInputFieldConfig(config: PothosInputFieldConfig<Types>) {
    const { kind, parentType, type, pothosOptions } = config
    const { units, batch, takes, example } = pothosOptions
    const nullable = pothosOptions.nullable ?? (kind === 'Arg' && parentType !== 'Mutation' && !type.required)
    const extensions = { ...config.extensions, nullable: nullable || undefined, units, batch, takes, example }
    return { ...config, extensions }
  }

  override onOutputFieldConfig(config: PothosOutputFieldConfig<Types>) {
    const { rest, weight, example, optional, bounds, ...options } = config.pothosOptions as FieldExtensions & {
      rest?: Rest | false
    }
    const items = Object.entries(config.args).find(([, { pothosOptions }]) => pothosOptions.batch)?.[0]
    const list = options.list ?? (items === undefined ? undefined : { ids: items, isBatch: true })
    const args = rest ? { ...config.args, ...conditionArgs(this.builder, config, rest.method) } : config.args
    const { argMappers, extensions, kind, name, parentType, type } = config
    const judgeNulls = (values: Values, _context: object, info: object) => {
      // A nested list is judged with its parent, whose `info` this is.
      const { schema } = info as GraphQLResolveInfo
      const args = () => (schema.getType(parentType) as GraphQLObjectType).getFields()[name]?.args ?? []
      return withoutNulls(args, values, kind !== 'Mutation')
    }
    return {
      ...config,
      args,
      type: { ...type, nullable: type.nullable || kind === 'Query' || kind === 'Mutation' },
      extensions: {
        ...extensions,
        rest: rest ? completeRest(rest) : undefined,
        list,
        weight,
        example,
        optional,
        bounds,
      },
      argMappers: Object.keys(args).length > 0 ? [judgeNulls, ...argMappers] : argMappers,
    }
  }

  override wrapResolve(resolve: ConditionalResolver, config: PothosOutputFieldConfig<Types>) {
    return config.args.ifMatch ? ifMatching(this.builder, config, resolve) : resolve
  }
}

SchemaBuilder.registerPlugin('gateway', GatewayPlugin)
