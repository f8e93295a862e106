import {
  type ASTNode,
  type DocumentNode,
  GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  visit,
} from 'graphql'
import { atomic, operations } from '../../../schema/index.js'
import { invalidRequest } from '../../../schema/kit/errors.js'
import { getOrCreate } from '../../../schema/kit/get-or-create.js'
import { anyOf, didYouMean, shownName } from '../../../schema/kit/input/problems.js'
import {
  type ExecutionRequest,
  MAX_EXPANDED,
  MAX_PLANS,
  prepare,
  type SelectedField,
  Selections,
} from '../../engines/executor/index.js'
import type { NamedRow } from '../context/index.js'
import { type Cost, costOf, type Variables } from './cost.js'
import {
  countTokens,
  isShort,
  MAX_FREE_FIELDS,
  MAX_FREE_TOKENS,
  MAX_TOKENS,
  measureWithinLimits,
  parseWithinLimits,
} from './limits.js'
import { rowsOfMutation } from './rows.js'
import { validateDocument } from './validate-document.js'
import { createVariables } from './variables.js'

/** Names of operations that an error lists. */
const MAX_NAMES = 10

/** Limits that a refusal can name, the largest first. Each costs a walk over the document. */
const NAMED_LIMITS = [90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 2, 1]

/** Why a document has no operation to execute, or too many. */
function noOperation({ definitions }: DocumentNode, name: string | undefined): string {
  const operations = definitions.filter((definition) => definition.kind === Kind.OPERATION_DEFINITION)
  const names = [...new Set(operations.flatMap(({ name }) => name?.value ?? []))].slice(0, MAX_NAMES)
  if (operations.length === 0) return 'The document has no operation.'
  if (name === undefined)
    return `The document has ${operations.length} operations; set operationName to ${anyOf(names) || 'the name of one'}.`
  return `The document has no operation named ${shownName(name)}; ${didYouMean(name, names) ?? `it has ${anyOf(names) || 'one without a name'}.`}`
}

/**
 * Names an operation in logs and metrics, by the operationIds of its root fields in alphabetical order. The client's own
 * name for it is not used: it can be long and have any value.
 */
function nameOf(selections: Selections, operation: OperationDefinitionNode): string | undefined {
  const defined = selections.schema.getRootType(operation.operation)?.getFields()
  const nameOfField = (field: string) =>
    field === '__schema' || field === '__type'
      ? 'introspection'
      : (operations.find(({ name }) => name === field)?.operationId ?? defined?.[field]?.name)
  const selected = [...selections.expand([selections.root(operation)]).values()].flat()
  const names = new Set(selected.flatMap(({ node }) => nameOfField(node.name.value) ?? []))
  return [...names].sort().join() || undefined
}

const tooManySelections = () =>
  invalidRequest(
    `The fragments of the document expand to more than ${MAX_EXPANDED} selections, which is the most allowed. Spread fewer fragments in each other.`,
  )

/** A document within the limits, with everything that can be computed before it runs. Each result is computed once. */
export class KnownDocument {
  readonly node: DocumentNode
  readonly selections: Selections
  readonly sizes: ReturnType<typeof measureWithinLimits>
  readonly isShort: boolean
  readonly #operations = new Map<string | undefined, KnownOperation>()
  /** Selections of a valid document with its fragments expanded: what a plan of its execution can hold at most. */
  #expanded = 0
  #errors?: readonly GraphQLError[]

  /** @throws ApiError invalid_request (a limit), GraphQLError (a syntax error) */
  constructor(schema: GraphQLSchema, source: string, maxTokens = MAX_TOKENS) {
    this.node = parseWithinLimits(source, maxTokens)
    this.isShort = isShort(source)
    this.selections = new Selections(schema, this.node, tooManySelections)
    this.sizes = measureWithinLimits(this.selections)
  }

  /** Validation errors; empty for a valid document. */
  get errors(): readonly GraphQLError[] {
    this.#errors ??= this.#validate()
    return this.#errors
  }

  #validate(): readonly GraphQLError[] {
    const errors = validateDocument(this.selections.schema, this.node)
    if (errors.length > 0) return errors
    try {
      this.#expanded = this.selections.count()
      return errors
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error
      return [error]
    }
  }

  /**
   * What it can take in memory, in bytes: its text, its tokens with its syntax tree, and every plan of every operation.
   * Fragments that operations share count for each of them, because their plans share nothing.
   */
  get weight(): number {
    const { definitions, loc } = this.node
    // A syntax tree without locations keeps none.
    const tokens = loc ? countTokens(this.node) : MAX_TOKENS
    const text = 2 * (loc?.source.body.length ?? 0)
    const operations = definitions.filter(({ kind }) => kind === Kind.OPERATION_DEFINITION).length
    const plans = operations * (this.selections.conditions.size > 0 ? MAX_PLANS : 1)
    const expanded = this.errors.length > 0 ? 0 : this.#expanded
    return BYTES_PER_DOCUMENT + text + BYTES_PER_TOKEN * tokens + BYTES_PER_SELECTION * plans * expanded
  }

  /** @throws ApiError invalid_request (the name is wrong, or missing among several) */
  operation(name?: string): KnownOperation {
    return getOrCreate(this.#operations, name, () => {
      const definition = getOperationAST(this.node, name)
      if (!definition) throw invalidRequest(noOperation(this.node, name))
      return new KnownOperation(this, definition)
    })
  }
}

/** Whether a field of a document has a selection or arguments, and is not a field of the root of mutations. */
function readsBelow(document: DocumentNode, root: string | undefined): boolean {
  let found = false
  const isAbove = (node: ASTNode | readonly ASTNode[]) =>
    'kind' in node &&
    (node.kind === Kind.FIELD ||
      ((node.kind === Kind.FRAGMENT_DEFINITION || node.kind === Kind.INLINE_FRAGMENT) &&
        (node.typeCondition?.name.value ?? root) !== root))
  visit(document, {
    Field({ selectionSet, arguments: given }, _key, _parent, _path, ancestors) {
      if (selectionSet || given?.length) found ||= ancestors.some(isAbove)
    },
  })
  return found
}

export class KnownOperation {
  /** For logs and metrics. */
  readonly name: string | undefined
  readonly isMutation: boolean
  /** Whether its fields take effect together. */
  readonly isAtomic: boolean
  /** Whether it reads below a root field, which can fail after that has made its change. */
  readonly readsBelow: boolean
  #cost?: { values: NonNullable<Variables>; cost: Cost }
  #prepared?: ReturnType<typeof prepare>
  #read?: ReturnType<typeof createVariables>

  constructor(
    private readonly document: KnownDocument,
    readonly definition: OperationDefinitionNode,
  ) {
    this.name = nameOf(document.selections, definition)
    this.isMutation = definition.operation === OperationTypeNode.MUTATION
    this.isAtomic = definition.directives?.some(({ name }) => name.value === atomic.name) ?? false
    this.readsBelow = this.isMutation && readsBelow(document.node, document.selections.schema.getMutationType()?.name)
  }

  /** Whether a root field takes the items of a batch. */
  get isBatch(): boolean {
    const { selections } = this.document
    const fields = selections.expand([selections.root(this.definition)]).values()
    const args = [...fields].flatMap(([field]) => selections.definitionOf(field as SelectedField)?.args ?? [])
    return args.some(({ extensions }) => extensions.batch)
  }

  /** It is computed again if a variable that it depends on has changed, which takes 10 to 500 µs. */
  cost(variables: Variables): Cost {
    const known = this.#cost
    if (known?.cost.variables.every((name) => known.values[name] === variables?.[name])) return known.cost
    const cost = costOf(this.document.selections, this.definition, variables)
    const values = Object.fromEntries(cost.variables.map((name) => [name, variables?.[name]]))
    // Lists and texts are not kept: they may be long.
    if (Object.values(values).every((value) => ['number', 'boolean', 'undefined'].includes(typeof value)))
      this.#cost = { values, cost }
    return cost
  }

  /** Whether it is small enough to be free, and valid. */
  get isSmall(): boolean {
    const { isShort, node, sizes } = this.document
    const fields = sizes.get(this.definition)?.fields ?? 0
    if (!isShort || fields > MAX_FREE_FIELDS || countTokens(node) > MAX_FREE_TOKENS) return false
    return this.document.errors.length === 0
  }

  /** The rows that a mutation changes, as its arguments name them. */
  rows(variables: Variables): NamedRow[] {
    return rowsOfMutation(this.document.selections, this.definition, variables)
  }

  /** Which `limit` in every list, and how many items in every batch, make the operation fit, as a sentence. */
  fittingLimit(variables: Variables, fits: (cost: Cost) => boolean): string {
    let [first, end] = [0, NAMED_LIMITS.length]
    while (first < end) {
      const middle = (first + end) >> 1
      const cost = costOf(this.document.selections, this.definition, variables, NAMED_LIMITS[middle])
      if (fits(cost)) end = middle
      else first = middle + 1
    }
    const limit = NAMED_LIMITS[first]
    if (limit === undefined)
      return 'It would not fit with any limit of its lists: select fewer fields, or send several operations.'
    return this.isMutation
      ? `It would fit with at most ${limit} items in every batch and every list.`
      : `It would fit with a limit of ${limit} in every list (in connections: first or last).`
  }

  /** Executes it with the variables that the client sent. */
  execute(values: Variables, request: Omit<ExecutionRequest, 'variables'>) {
    const { selections } = this.document
    const { schema, document } = selections
    this.#read ??= createVariables(schema, document, this.definition)
    const variables = this.#read(values)
    if ('errors' in variables) return variables
    this.#prepared ??= prepare(schema, document, this.definition, { selections })
    return this.#prepared({ variables: variables.coerced, ...request })
  }
}

// Measured; see test/hostile-documents.test.ts.
const BYTES_PER_DOCUMENT = 10_000
const BYTES_PER_TOKEN = 700
const BYTES_PER_SELECTION = 1_000
