import {
  type ASTNode,
  BREAK,
  type DocumentNode,
  type GraphQLError,
  type GraphQLSchema,
  getOperationAST,
  type OperationDefinitionNode,
  parse,
  validate,
  visit,
} from 'graphql'
import { LRUCache } from 'lru-cache'
import { ApiError } from '../../schema/errors.js'
import { type PreparedOperation, prepare } from '../execute/executor.js'
import { assertWithinLimits, costOf, MAX_TOKENS, type Variables } from './limits.js'
import { operationName } from './operation-name.js'

/** Text of all documents in the cache, in characters. */
const MAX_CACHED = 8_388_608

/** A parsed document, with everything that can be known of it before it runs. Each fact is computed once. */
export class KnownDocument {
  readonly #operations = new Map<string | undefined, ReturnType<typeof knowOperation>>()
  #errors?: readonly GraphQLError[]

  constructor(
    readonly schema: GraphQLSchema,
    readonly node: DocumentNode,
  ) {}

  /** Validation errors; empty for a valid document. */
  get errors(): readonly GraphQLError[] {
    this.#errors ??= validate(this.schema, this.node)
    return this.#errors
  }

  /** The operation that a request names; undefined where the name is wrong, or missing among several. */
  operation(name?: string) {
    const known = this.#operations.get(name)
    const definition = known ? undefined : getOperationAST(this.node, name)
    if (!definition) return known
    const operation = knowOperation(this, definition)
    this.#operations.set(name, operation)
    return operation
  }
}

/** One operation of a document, with everything that can be known of it before it runs. */
function knowOperation(document: KnownDocument, definition: OperationDefinitionNode) {
  const { schema, node } = document
  const isConstant = !readsVariables(node)
  const once = <Result>(compute: (variables: Variables) => Result) => {
    let known: { result: Result } | undefined
    return (variables: Variables): Result => {
      const { result } = known ?? { result: compute(variables) }
      if (isConstant) known ??= { result }
      return result
    }
  }
  let prepared: PreparedOperation | undefined
  return {
    definition,
    name: operationName(schema, node, definition),
    cost: once((variables) => costOf(schema, document, definition, variables)),
    /** @throws ApiError invalid_request */
    assertWithinLimits: once((variables) => assertWithinLimits(schema, node, definition, variables)),
    execute: ((request) => {
      prepared ??= prepare(schema, node, definition)
      return prepared(request)
    }) satisfies PreparedOperation,
  }
}

/** Whether cost and limits depend on variables: those in directives and in the arguments that size a list. */
function readsVariables(document: DocumentNode): boolean {
  let found = false
  const look = (node: ASTNode) =>
    void visit(node, {
      Variable() {
        found = true
        return BREAK
      },
    })
  visit(document, {
    Directive: look,
    Argument: (node) => (node.name.value === 'limit' || node.name.value === 'id' ? look(node) : undefined),
  })
  return found
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

/**
 * The documents that clients send again and again, each parsed once. `memo` gives the document of a text.
 *
 * @throws ApiError invalid_request (too many tokens), GraphQLError (a syntax error)
 */
export const createDocuments = (schema: GraphQLSchema) =>
  new LRUCache<string, KnownDocument>({
    maxSize: MAX_CACHED,
    sizeCalculation: (_document, source) => source.length + 1,
    memoMethod: (source) => new KnownDocument(schema, parseWithinLimits(source)),
  })
