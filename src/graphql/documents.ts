import {
  type ASTVisitor,
  BREAK,
  type DocumentNode,
  type ExecutionResult,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
  validate,
  visit,
} from 'graphql'
import { LRUCache } from 'lru-cache'
import type { Context } from '../../schema/builder.js'
import { ApiError } from '../../schema/errors.js'
import { prepare } from '../execute/executor.js'
import { assertWithinLimits, type Cost, costOf, MAX_TOKENS } from './limits.js'

type Variables = Record<string, unknown> | undefined

/** Text of all documents in the cache, in characters. */
const MAX_CACHED = 8_388_608

/** Whether cost and limits depend on variables: those in directives and in the arguments that size a list. */
function readsVariables(document: DocumentNode): boolean {
  let found = false
  const within: ASTVisitor = {
    Variable() {
      found = true
      return BREAK
    },
  }
  visit(document, {
    Directive: (node) => void visit(node, within),
    Argument: (node) => void ((node.name.value === 'limit' || node.name.value === 'id') && visit(node, within)),
  })
  return found
}

/** One operation of a document, with everything that can be known of it before it runs. */
class KnownOperation {
  readonly definition: OperationDefinitionNode
  readonly #schema: GraphQLSchema
  readonly #document: KnownDocument
  #cost?: Cost
  #checked = false
  #execute?: ReturnType<typeof prepare>

  constructor(schema: GraphQLSchema, document: KnownDocument, definition: OperationDefinitionNode) {
    this.definition = definition
    this.#schema = schema
    this.#document = document
  }

  cost(variables: Variables): Cost {
    if (this.#cost) return this.#cost
    const cost = costOf(this.#schema, this.#document, this.definition, variables)
    if (!this.#document.readsVariables) this.#cost = cost
    return cost
  }

  /** @throws ApiError invalid_request */
  assertWithinLimits(variables: Variables): void {
    if (this.#checked) return
    assertWithinLimits(this.#schema, this.#document.node, this.definition, variables ?? {})
    this.#checked = !this.#document.readsVariables
  }

  execute(contextValue: Context, variables: Variables): ExecutionResult | Promise<ExecutionResult> {
    this.#execute ??= prepare(this.#schema, this.#document.node, this.definition.name?.value)
    return this.#execute({ contextValue, variables, raw: true })
  }
}

/** A parsed document, with everything that can be known of it before it runs. */
export class KnownDocument {
  readonly node: DocumentNode
  readonly #schema: GraphQLSchema
  readonly #operations = new Map<string, KnownOperation | undefined>()
  #errors?: readonly GraphQLError[]
  #readsVariables?: boolean

  constructor(schema: GraphQLSchema, node: DocumentNode) {
    this.#schema = schema
    this.node = node
  }

  /** Validation errors; empty for a valid document. */
  get errors() {
    this.#errors ??= validate(this.#schema, this.node)
    return this.#errors
  }

  get readsVariables() {
    this.#readsVariables ??= readsVariables(this.node)
    return this.#readsVariables
  }

  /** The operation that a request names; undefined where the name is wrong, or missing among several. */
  operation(name = ''): KnownOperation | undefined {
    if (this.#operations.has(name)) return this.#operations.get(name)
    const definition = getOperationAST(this.node, name || undefined)
    const operation = definition ? new KnownOperation(this.#schema, this, definition) : undefined
    if (definition) this.#operations.set(name, operation)
    return operation
  }
}

/** The documents that clients send again and again, each parsed once. */
export class Documents {
  readonly #schema: GraphQLSchema
  readonly #known = new LRUCache<string, KnownDocument>({
    maxSize: MAX_CACHED,
    sizeCalculation: (_document, source) => source.length + 1,
  })

  constructor(schema: GraphQLSchema) {
    this.#schema = schema
  }

  /** @throws ApiError invalid_request (too many tokens), GraphQLError (a syntax error) */
  get(source: string): KnownDocument {
    const known = this.#known.get(source)
    if (known) return known
    const document = new KnownDocument(this.#schema, parseWithinLimits(source))
    this.#known.set(source, document)
    return document
  }
}

function parseWithinLimits(source: string): DocumentNode {
  try {
    return parse(source, { maxTokens: MAX_TOKENS })
  } catch (error) {
    // Refused like any other limit: with 400, whatever media type the client accepts.
    if ((error as Error).message.startsWith('Syntax Error: Document contains more'))
      throw new ApiError('invalid_request', `The document has more than ${MAX_TOKENS} tokens.`)
    throw error
  }
}
