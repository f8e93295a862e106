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
import { assertWithinLimits, type Cost, costOf, MAX_TOKENS } from './limits.js'

/** Text of all documents in the cache, in characters. */
const MAX_CACHED = 8_388_608

type Variables = Record<string, unknown> | undefined

/** One operation of a document, with everything that can be known of it before it runs. */
export interface KnownOperation {
  definition: OperationDefinitionNode
  cost(variables: Variables): Cost
  /** @throws ApiError invalid_request */
  assertWithinLimits(variables: Variables): void
  execute: PreparedOperation
}

/** A parsed document, with everything that can be known of it before it runs. Each fact is computed once. */
export class KnownDocument {
  readonly node: DocumentNode
  readonly #schema: GraphQLSchema
  readonly #operations = new Map<string | undefined, KnownOperation>()
  #errors?: readonly GraphQLError[]

  constructor(schema: GraphQLSchema, node: DocumentNode) {
    this.#schema = schema
    this.node = node
  }

  /** Validation errors; empty for a valid document. */
  get errors(): readonly GraphQLError[] {
    this.#errors ??= validate(this.#schema, this.node)
    return this.#errors
  }

  /** The operation that a request names; undefined where the name is wrong, or missing among several. */
  operation(name?: string): KnownOperation | undefined {
    const known = this.#operations.get(name)
    const definition = known ? undefined : getOperationAST(this.node, name)
    if (!definition) return known
    const operation = this.#createOperation(definition)
    this.#operations.set(name, operation)
    return operation
  }

  #createOperation(definition: OperationDefinitionNode): KnownOperation {
    const schema = this.#schema
    const isConstant = !readsVariables(this.node)
    const once = <T>(compute: (variables: Variables) => T) => {
      let known: { value: T } | undefined
      return (variables: Variables): T => {
        if (known) return known.value
        const value = compute(variables)
        if (isConstant) known = { value }
        return value
      }
    }
    let prepared: PreparedOperation | undefined
    return {
      definition,
      cost: once((variables) => costOf(schema, this, definition, variables)),
      assertWithinLimits: once((variables) => assertWithinLimits(schema, this.node, definition, variables ?? {})),
      execute: (request) => {
        prepared ??= prepare(schema, this.node, definition)
        return prepared(request)
      },
    }
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
