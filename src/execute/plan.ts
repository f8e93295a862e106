import {
  type FieldNode,
  type GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLOutputType,
  type GraphQLResolveInfo,
  getNamedType,
  getNullableType,
  isAbstractType,
  isLeafType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
} from 'graphql'
import { collectSubfields } from 'graphql/execution/collectFields.js'
import type { Selections } from './selections.js'

export type Data = Record<string, unknown>
export type Path = GraphQLResolveInfo['path']

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
  omitNulls: boolean
  /** Characters that the keys and texts of the result may still have. */
  room: number
  /** Errors by the position that each one set to null; `undefined` is the position of the whole data. */
  errors: Map<Path | undefined, GraphQLError> | undefined
}

/** Completes a value: serializes a leaf, executes a selection. It throws if the value is wrong. */
export type Complete = (execution: Execution, value: unknown, path?: Path) => unknown

/** A place that a value is completed for: a field, or the items of its list. */
export interface Slot {
  type: GraphQLOutputType
  nodes: readonly FieldNode[]
  complete: Complete
}

/** A response key of a selection, with everything about it that does not depend on a value. */
export interface Field extends Omit<Slot, 'complete'> {
  key: string
  name: string
  parentType: GraphQLObjectType
  definition: GraphQLField<unknown, unknown>
  /** The value is a leaf and a property of the parent: no resolver, no argument, no use of `info`. */
  isProperty: boolean
  /** The nodes that its resolver gets (see Plan.nodesOf). */
  merged: readonly FieldNode[] | undefined
}

export interface PlannedField extends Field, Slot {}

/**
 * The selections of an operation, for one combination of the variables in @skip and @include. Each is planned with the
 * first value that it is selected from, once, however many paths lead to it.
 */
export class Plan {
  readonly #fields = new Map<string, PlannedField[]>()

  constructor(
    readonly selections: Selections,
    readonly completerOf: (type: GraphQLOutputType, field: Field) => Complete,
  ) {}

  /** The fields that the selection sets of the nodes, merged, select from the type. */
  below(variables: Data, type: GraphQLObjectType, nodes: readonly (FieldNode | OperationDefinitionNode)[]) {
    const key = `${type.name}:${this.selections.keyOf(nodes)}`
    const known = this.#fields.get(key)
    if (known) return known
    const { schema, fragments } = this.selections
    const collected = collectSubfields(schema, fragments, variables, type, nodes as FieldNode[])
    const fields = Array.from(collected, ([key, nodes]) => this.#plan(key, nodes, type))
    this.#fields.set(key, fields)
    return fields
  }

  #plan(key: string, nodes: readonly FieldNode[], parentType: GraphQLObjectType): PlannedField {
    const node = nodes[0] as FieldNode
    const definition = this.selections.definitionOf({ node, parent: parentType.name }) as PlannedField['definition']
    const { name, type } = definition
    const isProperty = !definition.resolve && definition.args.length === 0 && isLeafType(getNullableType(type))
    const field: Field = { key, name, type, nodes, parentType, definition, isProperty, merged: undefined }
    return { ...field, complete: this.completerOf(type, field) }
  }

  /**
   * The nodes of a field for its resolver: equal fields as one node, fragments expanded, and without what is skipped.
   * Pothos walks them path by path, and would walk a fragment in a fragment in a fragment as often as it is spread.
   */
  nodesOf(variables: Data, field: Field): readonly FieldNode[] {
    field.merged ??= this.#merge(variables, field)
    return field.merged
  }

  #merge(variables: Data, { type, nodes }: Field): readonly FieldNode[] {
    const named = getNamedType(type)
    if (isAbstractType(named)) return nodes
    if (!isObjectType(named)) return nodes.slice(0, 1)
    let selections: FieldNode[] = []
    try {
      selections = this.below(variables, named, nodes).flatMap((field) => this.nodesOf(variables, field))
    } catch {
      // @skip or @include got null: every value of this field will report it.
    }
    const [first] = nodes as [FieldNode]
    return [{ ...first, directives: [], selectionSet: { kind: Kind.SELECTION_SET, selections } }]
  }
}
