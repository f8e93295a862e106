import { getNamedType, isInputObjectType } from 'graphql'
import { describe, expect, test } from 'vitest'
import { operations, schema } from '../schema/index.js'
import { catalogue } from '../schema/kit/errors.js'
import { fill, type Operation } from '../schema/kit/operations.js'
import { cases } from './resources/index.js'
import type { Args } from './resources/resource.js'
import { callGraphql, callRest, contents, resetStore } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

// The table of cases is in test/resources. A root field without cases fails, and so does an argument that no success uses.

const gateway = await sharedGateway()
// From here on, two reads of the quota show the same windows.
await gateway.get('/categories')

async function throughRest(operation: Operation, args: Args) {
  const { method, path, status = 200 } = operation.rest
  // A delete returns no body in REST, and the deleted object in GraphQL.
  const deleted = method === 'DELETE' ? (await gateway.get(fill(path, args))).body : undefined
  const answer = await callRest(gateway, operation, args)
  if (answer.status >= 400) return { code: answer.body.code, status: answer.status }
  expect([answer.status, answer.text === '']).toEqual([status, status === 204])
  return { data: answer.body ?? deleted }
}

async function throughGraphql(operation: Operation, args: Args) {
  const { errors, data } = (await callGraphql(gateway, operation, args)).body
  if (errors) return errors[0].extensions
  return JSON.parse(JSON.stringify({ data: data[operation.name] }), (_, value) => value ?? undefined)
}

const inputFields = ({ field }: Operation) =>
  field.args.flatMap(({ type }) => {
    const named = getNamedType(type)
    return isInputObjectType(named) ? Object.keys(named.getFields()) : []
  })

describe('the table of cases', () => {
  test('has every root field of the schema', () => {
    const types = [schema.getQueryType(), schema.getMutationType()]
    // Connections and nodes have tests of their own: REST has none.
    const names = types.flatMap((type) => Object.keys(type?.getFields() ?? {}))
    const rootFields = names.filter((name) => !/Connection$|^nodes?$/.test(name)).sort()
    expect(Object.keys(cases).sort()).toEqual(rootFields)
    expect(operations.map(({ name }) => name).sort()).toEqual(rootFields)
  })

  test.each(operations)('uses every argument of $name in a success', (operation) => {
    const used = (cases[operation.name] ?? []).flatMap(([expected, args]) =>
      expected === 'success' ? [...Object.keys(args), ...[args.input ?? {}].flat().flatMap(Object.keys)] : [],
    )
    // Cursors and totals are REST's alone.
    const shared = operation.field.args.filter(({ extensions }) => !extensions.subGraphs)
    const names = [...shared.map(({ name }) => name), ...inputFields(operation)]
    expect(used).toEqual(expect.arrayContaining(names))
  })

  test.each(operations)('has every error of $name', (operation) => {
    const { name, field, rest } = operation
    const { key } = operation.body?.extensions.batch ?? {}
    const refers = inputFields(operation).some((input) => input.endsWith('Id') && input !== key)
    const expected = [
      ...(field.args.length > 0 ? ['invalid_request'] : []),
      ...(rest.path.includes('{') || key ? ['not_found'] : []),
      ...(field.args.some((arg) => arg.name === 'ifMatch') ? ['precondition_failed'] : []),
      ...(refers ? ['unknown_reference'] : []),
      ...(rest.errors ?? []),
    ]
    expect((cases[name] ?? []).map(([outcome]) => outcome)).toEqual(expect.arrayContaining(expected))
  })
})

describe.each(operations)('$name', (operation) => {
  test.each(cases[operation.name] ?? [])('is %s on both surfaces with %o', async (expected, args) => {
    await resetStore(gateway.prisma)
    const rest = await throughRest(operation, args)
    const stored = await contents(gateway.prisma)
    await resetStore(gateway.prisma)
    const graphql = await throughGraphql(operation, args)

    // These may differ: the whole quota is too large to be free in GraphQL, and usage is written some seconds later.
    const changing = ['remaining', 'requests', 'refused', 'cost', 'outcomes']
    const shown = (answer: object) =>
      JSON.stringify(answer, (key, value) => (changing.includes(key) ? typeof value : value))
    expect(JSON.parse(shown(graphql))).toEqual(JSON.parse(shown(rest)))
    expect(await contents(gateway.prisma)).toEqual(stored)
    if (expected === 'success') expect(rest.data).toBeDefined()
    else expect(rest).toEqual({ code: expected, status: catalogue[expected].status })
  })
})
