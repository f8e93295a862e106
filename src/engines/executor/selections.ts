import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  GraphQLError,
  type GraphQLField,
  type GraphQLObjectType,
  type GraphQLSchema,
  getNamedType,
  type InlineFragmentNode,
  isAbstractType,
  isInterfaceType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  SchemaMetaFieldDef,
  type SelectionNode,
  type SelectionSetNode,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
  visit,
} from 'graphql'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'

/** Selections that the merged selection sets of a document may have together. */
export const MAX_EXPANDED = 5_000

/** A selection set, and the name of the type that it selects from, as far as it is known. */
export interface Selection {
  set: SelectionSetNode
  type: string | undefined
}

export interface SelectedField {
  node: FieldNode
  /** The name of the type that it is selected from. */
  parent: string | undefined
}

interface Expansion {
  /** The object type that they select from. Without it, fragments on every type count. */
  type?: string
  includes?: (node: SelectionNode) => boolean
}

type Fragment = Pick<FragmentDefinitionNode | InlineFragmentNode, 'selectionSet' | 'typeCondition'>

/** Fields by response key. */
export type Fields = Map<string, SelectedField[]>

/**
 * What all readers of a document share: its limits, its cost, its name in logs, and its execution. The document need not
 * be valid: an unknown field has no definition, an unknown fragment no fields.
 */
export class Selections {
  /** By name. */
  readonly fragments: Record<string, FragmentDefinitionNode> = Object.create(null)
  /** The names of the variables that @skip and @include use. */
  readonly conditions = new Set<string>()
  readonly #numbers = new Map<object, number>()

  /** @param tooMany makes the error of more than MAX_EXPANDED selections */
  constructor(
    readonly schema: GraphQLSchema,
    readonly document: DocumentNode,
    private readonly tooMany = () => new GraphQLError(`More than ${MAX_EXPANDED} selections.`),
  ) {
    visit(document, {
      FragmentDefinition: (node) => {
        this.fragments[node.name.value] = node
      },
      Directive: ({ name, arguments: given = [] }) => {
        if (name.value !== 'skip' && name.value !== 'include') return
        for (const { value } of given) if (value.kind === Kind.VARIABLE) this.conditions.add(value.name.value)
      },
    })
  }

  definitionOf({ node, parent }: SelectedField): GraphQLField<unknown, unknown> | undefined {
    const name = node.name.value
    const type = parent === undefined ? undefined : this.schema.getType(parent)
    const known = isObjectType(type) || isInterfaceType(type) ? type.getFields()[name] : undefined
    return known ?? [TypeNameMetaFieldDef, SchemaMetaFieldDef, TypeMetaFieldDef].find((field) => field.name === name)
  }

  /** The selection sets below fields of one response key, which are merged. */
  below(fields: SelectedField[]): Selection[] {
    return fields.flatMap((field) => {
      const { selectionSet: set } = field.node
      const definition = set && this.definitionOf(field)
      return set ? [{ set, type: definition && getNamedType(definition.type).name }] : []
    })
  }

  /** The fields of merged selection sets. Each fragment is expanded once. */
  expand(selections: Selection[], { type: object, includes = () => true }: Expansion = {}): Fields {
    const fields: Fields = new Map()
    const spread = new Set<string>()
    const walk = ({ set, type }: Selection) => {
      for (const node of set.selections) {
        if (!includes(node)) continue
        if (node.kind === Kind.FIELD) {
          const key = (node.alias ?? node.name).value
          getOrCreate(fields, key, (): SelectedField[] => []).push({ node, parent: object ?? type })
        } else if (node.kind === Kind.INLINE_FRAGMENT) {
          walkFragment(node, type)
        } else if (!spread.has(node.name.value)) {
          spread.add(node.name.value)
          const fragment = this.fragments[node.name.value]
          if (fragment) walkFragment(fragment)
        }
      }
    }
    const walkFragment = ({ selectionSet: set, typeCondition }: Fragment, around?: string) => {
      const type = typeCondition?.name.value ?? around
      if (!object || !typeCondition || this.#isOf(object, typeCondition.name.value)) walk({ set, type })
    }
    for (const selection of selections) walk(selection)
    return fields
  }

  /** Whether objects of the first type are of the second one. */
  #isOf(object: string, name: string): boolean {
    const type = this.schema.getType(name)
    if (!isAbstractType(type)) return object === name
    return this.schema.isSubType(type, this.schema.getType(object) as GraphQLObjectType)
  }

  /** The types that objects of the type may have: of an interface or a union, those of its members. */
  #objectTypesOf(name: string | undefined): (string | undefined)[] {
    const type = name === undefined ? undefined : this.schema.getType(name)
    if (isAbstractType(type)) return this.schema.getPossibleTypes(type).map((possible) => possible.name)
    return [isObjectType(type) ? type.name : undefined]
  }

  /** What an operation selects from. */
  root({ selectionSet: set, operation }: OperationDefinitionNode): Selection {
    return { set, type: this.schema.getRootType(operation)?.name }
  }

  /**
   * Computes something of merged selection sets, once for each type that the objects may have, as each type has fields of
   * its own: of each once, however often it is selected. Fragments can make exponentially many different ones, so their
   * selections are limited.
   */
  fold<Result>(compute: (fields: Fields) => Result, includes = (_: SelectionNode) => true) {
    const known = new Map<string, Result>()
    let expanded = 0
    const expand = (selections: Selection[], type: string | undefined) =>
      this.expand(selections, {
        type,
        includes: (node) => {
          if (++expanded <= MAX_EXPANDED) return includes(node)
          throw this.tooMany()
        },
      })
    const of = (selections: Selection[]): Result[] => {
      const key = this.keyOf(selections.map(({ set }) => set))
      return this.#objectTypesOf(selections[0]?.type).map((type) =>
        getOrCreate(known, `${type}:${key}`, () => compute(expand(selections, type))),
      )
    }
    return { of, expand }
  }

  /** Counts the selections of all operations with fragments expanded: what the plans of their executions hold at most. */
  count(): number {
    let count = 0
    const visit = (fields: Fields): true => {
      for (const selected of fields.values()) all.of(this.below(selected))
      return true
    }
    const all = this.fold(visit, () => ++count > 0)
    for (const node of this.document.definitions) if (node.kind === Kind.OPERATION_DEFINITION) all.of([this.root(node)])
    return count
  }

  /** A text that is the same for the same nodes. */
  keyOf(nodes: readonly object[]): string {
    return nodes.map((node) => getOrCreate(this.#numbers, node, () => this.#numbers.size)).join()
  }
}
