import {
  type FieldNode,
  type GraphQLError,
  type GraphQLField,
  type GraphQLLeafType,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  getNamedType,
  getNullableType,
  isLeafType,
  isNonNullType,
  type OperationDefinitionNode,
  TypeNameMetaFieldDef,
} from 'graphql'
import { collectSubfields } from 'graphql/execution/collectFields.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import { type Column, leafWriterOf } from './json.js'
import type { Path, Places } from './places.js'
import type { Selections } from './selections.js'

export type Data = Record<string, unknown>

/**
 * Returns why an execution must end; undefined while it may go on. It is asked before each resolver, because listening to
 * an AbortSignal would cost as much as a short query.
 */
export type Cancelled = () => Error | undefined

/** What all fields of one execution share. */
export interface Execution extends Pick<GraphQLResolveInfo, 'rootValue' | 'operation' | 'variableValues'> {
  plan: Plan
  contextValue: unknown
  cancelled: Cancelled | undefined
  pause: () => Promise<void> | undefined
  /** Made since it has last asked for a pause. */
  steps: number
  /** Why it has ended before its time, and what then rejects its result. */
  ended: Error | undefined
  end: ((reason: Error) => void) | undefined
  omitNulls: boolean
  /** Characters that the result may have, and may still have; and the error of more. */
  maxLength: number
  budget: number
  tooLong(maxLength: number): Error
  /** Errors by the position that each one set to null; `undefined` is the position of the whole data. */
  errors: Map<Path | undefined, GraphQLError> | undefined
}

/** Writes values of one type, each in its place. */
export type Write = (execution: Execution, values: readonly unknown[], places: Places) => Column | Promise<Column>

/** A response key of a selection, with everything about it that does not depend on a value. */
export interface Field {
  key: string
  name: string
  type: GraphQLOutputType
  nodes: readonly FieldNode[]
  parentType: GraphQLObjectType
  definition: GraphQLField<unknown, unknown>
}

export interface PlannedField extends Field {
  /** How its values are found: as properties of the objects, by one call for all of them, or by a call for each. */
  from: 'property' | 'all' | 'each'
  write: Write
  /** Writes a property. */
  leaf: (value: unknown) => string
  isNonNull: boolean
  /** What it begins with as a part of an object. */
  label: string
  /** What it is in every object. */
  constant: string | undefined
}

/** The fields of a selection. In `runs`, adjacent ones that are properties stand together. */
interface Selected {
  fields: readonly PlannedField[]
  runs: readonly (readonly PlannedField[])[]
}

/**
 * The selections of an operation, for one combination of the variables in @skip and @include. Each is planned with the
 * first value that it is selected from, once, however many paths lead to it.
 */
export class Plan {
  /** By type and, because a fragment is planned once however many aliases spread it, by the nodes that select. */
  readonly #selected = new Map<string, Selected>()
  readonly #known = new Map<readonly unknown[], Map<GraphQLObjectType, Selected>>()

  constructor(
    readonly selections: Selections,
    readonly writerOf: (type: GraphQLOutputType, field: Field) => Write,
  ) {}

  /** What the selection sets of the nodes, merged, select from the type. */
  below(variables: Data, type: GraphQLObjectType, nodes: readonly (FieldNode | OperationDefinitionNode)[]): Selected {
    const ofNodes = getOrCreate(this.#known, nodes, () => new Map())
    return getOrCreate(ofNodes, type, () => {
      const key = `${type.name}:${this.selections.keyOf(nodes)}`
      return getOrCreate(this.#selected, key, () => this.#select(variables, type, nodes as FieldNode[]))
    })
  }

  #select(variables: Data, type: GraphQLObjectType, nodes: readonly FieldNode[]): Selected {
    const { schema, fragments } = this.selections
    const collected = collectSubfields(schema, fragments, variables, type, nodes)
    const fields = Array.from(collected, ([key, nodes]) => this.#plan(key, nodes, type))
    const runs: PlannedField[][] = []
    for (const field of fields) {
      const run = runs.at(-1)
      if (run && field.from === 'property' && run[0]?.from === 'property') run.push(field)
      else runs.push([field])
    }
    return { fields, runs }
  }

  #plan(key: string, nodes: readonly FieldNode[], parentType: GraphQLObjectType): PlannedField {
    const node = nodes[0] as FieldNode
    const definition = this.selections.definitionOf({ node, parent: parentType.name }) as Field['definition']
    const { name, type, args, resolve, extensions } = definition
    const constant = definition === TypeNameMetaFieldDef ? JSON.stringify(parentType.name) : undefined
    const isProperty = constant !== undefined || (!resolve && args.length === 0 && isLeafType(getNullableType(type)))
    return {
      from: extensions.resolvesAll ? 'all' : isProperty ? 'property' : 'each',
      write: this.writerOf(type, { key, name, type, nodes, parentType, definition }),
      leaf: leafWriterOf(getNamedType(type) as GraphQLLeafType),
      isNonNull: isNonNullType(type),
      // A name of GraphQL has nothing to escape.
      label: `"${key}":`,
      constant,
      key,
      name,
      type,
      nodes,
      parentType,
      definition,
    }
  }
}
