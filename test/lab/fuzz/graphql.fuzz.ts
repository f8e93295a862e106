import { hash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import fc from 'fast-check'
import {
  buildSchema,
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLObjectType,
  type GraphQLOutputType,
  getNullableType,
  getOperationAST,
  getVariableValues,
  isEnumType,
  isInterfaceType,
  isListType,
  isNonNullType,
  isObjectType,
  Kind,
  parse,
  validate,
} from 'graphql'
import { collectFields, collectSubfields } from 'graphql/execution/collectFields.js'
import { getFieldDef } from 'graphql/execution/execute.js'
import { afterAll, beforeAll } from 'vitest'
import { json, resetStore } from '../../support/calls.js'
import { type Answer, type Gateway, openGateway } from '../../support/gateway.js'
import { brokenDocuments, type FuzzDocument, validDocuments } from './documents.js'
import { assertHealthy, curl, type FuzzRequest, fuzz, messagesOf } from './fuzz.js'

// Documents by schema.graphql: valid ones, broken ones, and requests that are not even documents.

const schema = buildSchema(readFileSync('schema.graphql', 'utf8'))

let gateway: Gateway
beforeAll(async () => {
  gateway = await openGateway()
  await resetStore(gateway.prisma)
  for (const query of persisted) {
    const extensions = { persistedQuery: { version: 1, sha256Hash: hash('sha256', query) } }
    await send(requestOf({ body: json({ query, variables: { id: 1 }, extensions }) }))
  }
})
afterAll(() => gateway.close())

const requestOf = ({ method, target, headers, body }: Partial<FuzzRequest>): FuzzRequest => ({
  method: method ?? 'POST',
  target: target ?? '/graphql',
  headers: { 'content-type': 'application/json', 'x-api-key': gateway.key, ...headers },
  body,
})

async function send({ method, target, headers, body }: FuzzRequest): Promise<Answer> {
  const answer = await gateway.call(method, target, { key: null, headers, body })
  assertHealthy(gateway, [answer.status], messagesOf(answer))
  // Every case starts with the same rows, so that it can be repeated alone.
  if (/mutation/.test(`${target}${body}`) && answer.body?.data) await resetStore(gateway.prisma)
  return answer
}

const parsed = (query: string): DocumentNode | undefined => {
  try {
    return parse(query)
  } catch {
    return undefined
  }
}

/** Whether the data has exactly the selected keys, and of each a value of its type. */
function assertData(data: unknown, document: DocumentNode, given: Record<string, unknown>) {
  const operation = getOperationAST(document)
  const root = operation && schema.getRootType(operation.operation)
  const { coerced: variables } = getVariableValues(schema, operation?.variableDefinitions ?? [], given)
  if (!root || !variables) throw new Error('Data for an operation or variables that are not valid')
  const fragments = Object.fromEntries(
    document.definitions.flatMap((node) => (node.kind === Kind.FRAGMENT_DEFINITION ? [[node.name.value, node]] : [])),
  ) as Record<string, FragmentDefinitionNode>

  function object(value: Record<string, unknown>, type: GraphQLObjectType, fields: ReturnType<typeof collectFields>) {
    const keys = Object.keys(value).join()
    if (keys !== [...fields.keys()].join())
      throw new Error(`${type} has ${keys}, but ${[...fields.keys()]} was selected`)
    for (const [key, nodes] of fields) {
      const definition = getFieldDef(schema, type, nodes[0] as FieldNode)
      if (definition) check(value[key], definition.type, nodes as FieldNode[], `${type}.${key}`)
    }
  }
  function check(value: unknown, type: GraphQLOutputType, nodes: FieldNode[], where: string): void {
    const is = getNullableType(type)
    if (value === null && !isNonNullType(type)) return
    if (isListType(is)) {
      if (!Array.isArray(value)) throw new Error(`${where} is no list`)
      for (const item of value) check(item, is.ofType, nodes, where)
    } else if (isObjectType(is)) {
      object(value as Record<string, unknown>, is, collectSubfields(schema, fragments, variables ?? {}, is, nodes))
    } else if (isInterfaceType(is)) {
      // Which type it is shows only if the document asks for it.
      if (typeof value !== 'object') throw new Error(`${where} is ${value}`)
    } else if (isEnumType(is) ? !is.getValue(String(value)) : typeof value !== leaves[is.name]) {
      throw new Error(`${where} is ${value}`)
    }
  }
  object(
    data as Record<string, unknown>,
    root,
    collectFields(schema, fragments, variables, root, operation.selectionSet),
  )
}

const leaves: Record<string, string> = {
  Int: 'number',
  Int64: 'number',
  String: 'string',
  ID: 'string',
  Boolean: 'boolean',
  DateTime: 'string',
}

/** Statuses of GraphQL over HTTP, and of refusals before execution. */
const allowed = [200, 400, 429]

async function run({ query, variables }: FuzzDocument, request: FuzzRequest) {
  const { status, body } = await send(request)
  if (!allowed.includes(status)) throw new Error(`The response has the status ${status}`)
  const document = parsed(query)
  const valid = document && validate(schema, document).length === 0
  if (!valid && (body.data || !body.errors)) throw new Error('An invalid document was executed')
  if (!body.data && !body.errors) throw new Error('The response has neither data nor errors')
  if (valid && body.data) assertData(body.data, document, variables)
}

const posted = ({ query, variables }: FuzzDocument) => requestOf({ body: json({ query, variables }) })

fuzz('valid documents get data of their shape', 0.12, validDocuments(schema), {
  show: (document) => curl(posted(document)),
  async run(document) {
    const node = parsed(document.query)
    const errors = node ? validate(schema, node) : ['a syntax error']
    if (errors.length > 0) throw new Error(`The fuzzer is wrong: ${errors.join()}`)
    await run(document, posted(document))
  },
})

fuzz('broken documents are refused', 0.1, brokenDocuments(schema), {
  show: (document) => curl(posted(document)),
  run: (document) => run(document, posted(document)),
})

const anything = fc.anything({ maxDepth: 3, withBigInt: true, withObjectString: true })
const documents = fc.oneof(validDocuments(schema), brokenDocuments(schema))
const parameters = fc.record(
  {
    query: fc.oneof(
      { weight: 6, arbitrary: documents.map(({ query }) => query as unknown) },
      { weight: 1, arbitrary: anything },
    ),
    variables: fc.oneof(
      anything,
      documents.map(({ variables }) => variables as unknown),
      fc.dictionary(fc.constantFrom('v0', 'v1', 'v2', '__proto__'), anything),
    ),
    operationName: fc.oneof(fc.constantFrom('Q', '', 'toString', '__proto__'), anything),
    extensions: anything,
    id: anything,
  },
  { requiredKeys: ['query'] },
)
const bodies = fc.oneof<fc.Arbitrary<string | Uint8Array>[]>(
  parameters.map((value) => json(value)),
  fc.array(parameters, { maxLength: 3 }).map((value) => json(value)),
  fc.uint8Array({ maxLength: 500 }),
  fc.tuple(parameters, fc.nat(200)).map(([value, end]) => json(value).slice(0, end)),
)
/** Documents that clients send by hash: known ones, with what may stand beside a hash. */
const persisted = ['{ pets { id } }', 'mutation ($id: Int64!) { createOrder(input: { petId: $id }) { id } }']
const deep = fc
  .tuple(
    fc.constantFrom(['[', ']'], ['{"a":', '}'], ['[9007199254740993,', ']']),
    fc.constantFrom(1, 100, 2_000, 5_000, 20_000),
  )
  .map(([[open = '', close = ''], depth]) => `{"id":1,"more":${open.repeat(depth)}1${close.repeat(depth)}}`)
const byHash = fc
  .record({
    known: fc.constantFrom(...persisted),
    query: fc.constantFrom('', 'null', 'same', 'absent'),
    operationName: fc.constantFrom('', null, undefined, 'Q'),
    variables: fc.oneof(fc.constant('{"id":1}'), deep),
    headers: fc.record({ 'idempotency-key': fc.constantFrom('k', 'l', '') }, { requiredKeys: [] }),
  })
  .map(({ known, query, operationName, variables, headers }) => {
    const sent = { '': '', null: null, same: known, absent: undefined }[query]
    const extensions = { persistedQuery: { version: 1, sha256Hash: hash('sha256', known) } }
    const body = JSON.stringify({ query: sent, operationName, extensions, variables: '?' })
    return { body: body.replace('"?"', variables), headers: headers as Record<string, string> }
  })
const requests = fc.oneof<fc.Arbitrary<Partial<FuzzRequest>>[]>(
  byHash,
  fc.record({
    body: bodies,
    headers: fc.record(
      {
        accept: fc.constantFrom(
          'application/graphql-response+json',
          'text/html',
          'multipart/mixed',
          'text/event-stream',
          '*/*',
          '',
        ),
        'content-type': fc.constantFrom(
          'application/json; charset=utf-8',
          'application/graphql',
          'text/plain',
          'multipart/form-data; boundary=x',
          '',
        ),
      },
      { requiredKeys: [] },
    ),
  }),
  fc.record({
    method: fc.constantFrom('GET', 'HEAD', 'PUT', 'DELETE'),
    target: parameters.map((value) => {
      const texts = Object.entries(value).map(([name, part]) => [
        name,
        typeof part === 'string' ? part : (json(part) ?? ''),
      ])
      return `/graphql?${new URLSearchParams(texts.map(([name = '', text = '']) => [name, text.toWellFormed()]))}`
    }),
  }),
)

fuzz('any request to GraphQL gets an answer of GraphQL', 0.08, requests, {
  show: (request) => curl(requestOf(request)),
  async run(request) {
    const { status, body } = await send(requestOf(request))
    if (![...allowed, 405, 413, 415, 422].includes(status)) throw new Error(`The response has the status ${status}`)
    // Several operations get as many answers.
    const answers: (typeof body)[] = Array.isArray(body) ? body : [body]
    if (request.method !== 'HEAD' && !answers.every(({ data, errors }) => data || errors))
      throw new Error('The response has neither data nor errors')
  },
})
