import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLSchema,
  getNamedType,
  isInterfaceType,
  isObjectType,
  Kind,
  SchemaMetaFieldDef,
  type SelectionNode,
  type SelectionSetNode,
  TypeMetaFieldDef,
  TypeNameMetaFieldDef,
} from 'graphql'
import { ApiError } from '../../schema/errors.js'

// Walks over documents that nothing has validated yet: an unknown field has no definition, an unknown fragment no fields.

/** A document that exceeds a limit. It is refused before the quota, and charged one unit. */
export class DocumentLimitError extends ApiError {
  constructor(message: string) {
    super('invalid_request', message)
  }
}

/** Selections that the merged selection sets of a document may have together. */
const MAX_EXPANDED = 5_000

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

export type Fragments = ReadonlyMap<string, FragmentDefinitionNode>

export const fragmentsOf = ({ definitions }: DocumentNode): Fragments =>
  new Map(definitions.flatMap((node) => (node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node]] : [])))

export const responseKey = ({ alias, name }: FieldNode) => (alias ?? name).value

const metaFields = new Map<string, GraphQLField<unknown, unknown>>(
  [SchemaMetaFieldDef, TypeMetaFieldDef, TypeNameMetaFieldDef].map((field) => [field.name, field]),
)

export function definitionOf(schema: GraphQLSchema, { node, parent }: SelectedField) {
  const type = parent === undefined ? undefined : schema.getType(parent)
  const known = isObjectType(type) || isInterfaceType(type) ? type.getFields()[node.name.value] : undefined
  return known ?? metaFields.get(node.name.value)
}

/** The selection sets below fields of one response key, which are merged. */
export const subselections = (schema: GraphQLSchema, fields: SelectedField[]): Selection[] =>
  fields.flatMap((field) => {
    const definition = definitionOf(schema, field)
    return field.node.selectionSet
      ? [{ set: field.node.selectionSet, type: definition && getNamedType(definition.type).name }]
      : []
  })

/** The fields of merged selection sets by response key. Each fragment is expanded once. */
export function expand(selections: Selection[], fragments: Fragments, includes: (node: SelectionNode) => boolean) {
  const fields = new Map<string, SelectedField[]>()
  const spread = new Set<string>()
  const visit = ({ set, type }: Selection) => {
    for (const node of set.selections) {
      if (!includes(node)) continue
      if (node.kind === Kind.FIELD) {
        const key = responseKey(node)
        const others = fields.get(key)
        if (others) others.push({ node, parent: type })
        else fields.set(key, [{ node, parent: type }])
      } else if (node.kind === Kind.INLINE_FRAGMENT) {
        visit({ set: node.selectionSet, type: node.typeCondition?.name.value ?? type })
      } else if (!spread.has(node.name.value)) {
        spread.add(node.name.value)
        const fragment = fragments.get(node.name.value)
        if (fragment) visit({ set: fragment.selectionSet, type: fragment.typeCondition.name.value })
      }
    }
  }
  for (const selection of selections) visit(selection)
  return fields
}

/**
 * Computes something of merged selection sets, of each once, however often it is selected. Fragments can make
 * exponentially many different ones, so their selections are limited.
 */
export class MergedSelections<Result> {
  /** Selections seen so far. */
  expanded = 0
  readonly #numbers = new Map<SelectionSetNode, number>()
  readonly #known = new Map<string | SelectionSetNode, Result>()

  constructor(
    readonly fragments: Fragments,
    readonly compute: (fields: Map<string, SelectedField[]>) => Result,
    readonly includes: (node: SelectionNode) => boolean = () => true,
  ) {}

  /** @throws ApiError invalid_request */
  expand(selections: Selection[]) {
    return expand(selections, this.fragments, (node) => {
      if (++this.expanded <= MAX_EXPANDED) return this.includes(node)
      throw new DocumentLimitError(
        `The fragments of the document expand to more than ${MAX_EXPANDED} selections, which is the most allowed. Spread fewer fragments in each other.`,
      )
    })
  }

  /** @throws ApiError invalid_request */
  of(selections: Selection[]): Result {
    const key =
      selections.length === 1
        ? (selections[0] as Selection).set
        : selections.map(({ set }) => this.#numberOf(set)).join()
    const known = this.#known.get(key)
    if (known !== undefined) return known
    const result = this.compute(this.expand(selections))
    this.#known.set(key, result)
    return result
  }

  #numberOf(set: SelectionSetNode) {
    const number = this.#numbers.get(set) ?? this.#numbers.size
    this.#numbers.set(set, number)
    return number
  }
}
