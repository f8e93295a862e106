import { beforeEach, describe, expect, test } from 'vitest'
import { resetStore } from './support/calls.js'
import { sharedGateway } from './support/gateway.js'

// A client may use the names of what every object inherits, wherever it chooses a name.

const gateway = await sharedGateway()
beforeEach(() => resetStore(gateway.prisma))

describe.each(['constructor', 'toString', '__proto__', 'hasOwnProperty', 'valueOf'])('%s', (name) => {
  /** JSON text, because an object literal would set its prototype. */
  const send = (query: string, variables?: string) =>
    gateway.call('POST', '/graphql', {
      body: `{"query":${JSON.stringify(query)}${variables ? `,"variables":${variables}` : ''}}`,
    })
  const dataOf = async (query: string, variables?: string) => {
    const { text } = await send(query, variables)
    expect(text).not.toContain('errors')
    return text
  }
  const refusalOf = async (query: string, variables?: string) =>
    (await send(query, variables)).body.errors[0].message as string

  test.each([undefined, '{}', '{"other":1}'])('is absent if it is a variable that is not in %s', async (variables) => {
    const all = await dataOf('{ pets { id } }')
    expect(await dataOf(`query ($${name}: Int) { pets(limit: $${name}) { id } }`, variables)).toBe(all)
    expect(await dataOf(`query ($${name}: [Int64!]) { pets(id: $${name}) { id } }`, variables)).toBe(all)
    expect(await dataOf(`query ($${name}: Boolean = false) { pets @skip(if: $${name}) { id } }`, variables)).toBe(all)
    const create = `mutation ($${name}: PetStatus) { createPet(input: { name: "x", categoryId: 1, status: $${name} }) { status } }`
    expect(await dataOf(create, variables)).toContain('available')
    expect(await refusalOf(`query ($${name}: Int64!) { pet(petId: $${name}) { id } }`, variables)).toBe(
      `$${name} is required; send it in variables.`,
    )
  })

  test('can be a variable', async () => {
    const query = `query ($${name}: Int) { pets(limit: $${name}) { id } }`
    expect(await dataOf(query, `{"${name}":1}`)).toBe('{"data":{"pets":[{"id":1}]}}')
    expect(await refusalOf(query, `{"${name}":"x"}`)).toContain(`$${name} is "x"; it must be a whole number`)
  })

  test('can be an alias, a fragment and an operation', async () => {
    const query = `query ${name} { ${name}: pets(limit: 1) { ...${name} x: category { name } } }
      fragment ${name} on Pet { ${name}: category { ${name}: name } }`
    expect(await dataOf(query)).toBe(`{"data":{"${name}":[{"${name}":{"${name}":"Cats"},"x":{"name":"Cats"}}]}}`)
  })

  test.each([
    ['field', `{ ${name} { id } }`],
    ['field of an unknown field', `{ x { ${name} { ${name} { id } } } }`],
    ['field of an unknown type', `{ ...F } fragment F on X { ${name} { id } }`],
    ['type', `{ ... on ${name} { id } }`],
    ['type of a variable', `query ($a: ${name}) { pets { id } }`],
    ['argument', `{ pets(${name}: 1) { id } }`],
    ['directive', `{ pets @${name} { id } }`],
    ['fragment', `{ pets { ...${name} } }`],
    ['value of an enumeration', `{ pets(status: ${name}) { id } }`],
    ['field of an input', `mutation { updatePet(petId: 1, input: { ${name}: { name: "x" } }) { id } }`],
  ])('is refused as an unknown %s', async (_, query) => {
    expect(await refusalOf(query)).toMatch(/^(Unknown|Cannot query|Value|Field|The document)/)
  })

  test.each([
    [
      'of GraphQL',
      'POST',
      '/graphql',
      `{"query":"{ pets { id } }","${name}":{"query":"{}"}}`,
      'parameter NAME is unknown',
    ],
    ['of GraphQL in the URL', 'GET', `/graphql?query={pets{id}}&${name}=1`, undefined, 'parameter NAME is unknown'],
    ['of an operation', 'GET', `/graphql?query={pets{id}}&operationName=${name}`, undefined, 'no operation named NAME'],
    ['of a query parameter', 'GET', `/pets?${name}=1`, undefined, 'parameter NAME is unknown'],
    ['as a value', 'GET', `/pets?status=${name}`, undefined, 'status is "NAME"'],
    ['as an id', 'GET', `/pets/${name}`, undefined, 'petId is "NAME"'],
    ['of a field', 'PATCH', '/pets/1', `{"${name}":{"name":"x"}}`, 'NAME is unknown; known are'],
    [
      'of a field beside a long number',
      'PATCH',
      '/pets/1',
      `{"${name}":{"name":"x"},"y":1234567890123456789}`,
      'NAME is unknown',
    ],
    ['as a path', 'GET', `/${name}`, undefined, 'No operation has this path'],
  ])('is refused as the name %s', async (_, method, path, body, message) => {
    const { status, body: answer } = await gateway.call(method, path, { body })
    expect([400, 404]).toContain(status)
    expect((answer.errors?.[0] ?? answer).message).toContain(message.replace('NAME', name))
  })
})
