import { type Gateway, openGateway } from './gateway.js'

// What a client can send to make the gateway work for nothing.

export const repeat = (count: number, part: (i: number) => string) =>
  Array.from({ length: count }, (_, i) => part(i)).join(' ')
export const nest = (levels: number, inner: string, ...names: string[]) => {
  let body = inner
  for (let i = levels; i-- > 0; ) body = `${names[i % names.length]} { ${body} }`
  return body
}
/** Fragments that each spread the next one, several times in different fields. */
const chain = (levels: number, times: number) =>
  repeat(levels, (i) => {
    const [type, field] = i % 2 ? ['Category', 'pets(limit: 1)'] : ['Pet', 'category']
    return `fragment F${i} on ${type} { ${i < levels - 1 ? repeat(times, () => `${field} { ...F${i + 1} }`) : 'id'} }`
  })
const lines = (count: number) => '\n'.repeat(count)
const everyIntrospection = `fragment T on __Type { kind name description ofType { kind name ofType { kind name } } }
  fragment F on __Field { name description isDeprecated deprecationReason
    args { name description defaultValue type { ...T } }
    type { ...T inputFields { name type { ...T } } enumValues { name description }
      fields { name description args { name description type { ...T } } type { ...T } }
      more: fields { name args { name type { ...T } } type { ...T } } } }`

export const documents: [name: string, query: string, variables?: object][] = [
  ...([
    [
      'aliased lists of one under 100 parents',
      `{ pets(limit: 100) { ${repeat(99, (i) => `a${i}: orders(limit: 1, after: 1) { id }`)} } }`,
    ],
    [
      'different lists under 100 parents',
      `{ pets(limit: 100) { ${repeat(99, (i) => `a${i}: orders(limit: 1, after: ${i + 1}) { id }`)} } }`,
    ],
    [
      'different lists under one parent',
      `{ pet(petId: 1) { ${repeat(99, (i) => `a${i}: orders(limit: 1, after: ${i + 1}) { id }`)} } }`,
    ],
    [
      'parents with different lists',
      `{ pet(petId: 1) { ${repeat(49, (i) => `a${i}: category { pets(limit: 1, after: ${i + 1}) { id } }`)} } }`,
    ],
    ['10,000 objects', '{ pets(limit: 100) { id orders(limit: 99) { id petId quantity shipDate complete } } }'],
    ['aliased pets', `{ ${repeat(99, (i) => `a${i}: pet(petId: ${i + 1}) { id }`)} }`],
    [
      'a long text that is repeated',
      `{ pets(limit: 100) { category { ${repeat(99, (i) => `a${i}: description`)} } } }`,
    ],

    ['repeated introspection', `{ ${repeat(238, () => '__schema { types { name } }')} }`],
    ['aliased introspection', `{ ${repeat(95, (i) => `a${i}: __schema { types { name fields { name } } }`)} }`],
    [
      'introspection of every field of every field',
      `{ __schema { types { fields { ...F } a: fields { ...F } b: fields { ...F } } } } ${everyIntrospection}`,
    ],
    ['introspection that multiplies', `{ __schema { types { ${nest(8, 'name', 'fields', 'type')} } } }`],

    ['fragments that multiply fields', `{ pet(petId: 1) { ...F0 } } ${chain(9, 10)}`],
    [
      'fragments that multiply fields of a mutation',
      `mutation { updatePet(petId: 1, input: {}) { ...F0 } } ${chain(9, 10)}`,
    ],
    ['fragments that multiply levels', `{ pet(petId: 1) { ...F0 } } ${chain(60, 2)}`],
    [
      'fragments that spread each other twice',
      `{ ...F0 } ${repeat(160, (i) => `fragment F${i} on Query { ...F${i + 1} ...F${i + 1} }`)} fragment F160 on Query { dog }`,
    ],
    [
      'fragments that spread all that follow',
      `{ ...F0 } ${repeat(24, (i) => `fragment F${i} on Query { pets { dog } ${repeat(23 - i, (j) => `...F${i + j + 1}`)} }`)}`,
    ],
    ['a cycle of fragments', '{ ...A } fragment A on Query { pets { id } ...B } fragment B on Query { ...A }'],
    ['a cycle of fragments through fields', '{ pets { ...A } } fragment A on Pet { category { pets { ...A ...A } } }'],
    [
      'a large fragment in many selections',
      `{ ${repeat(230, (i) => `a${i % 24} { ...F }`)} } fragment F on Query { ${repeat(230, (i) => `f${i}`)} }`,
    ],
    [
      'many fragments in one selection',
      `{ pets(limit: 1) { ${repeat(150, (i) => `...F${i}`)} } } ${repeat(150, (i) => `fragment F${i} on Pet { ${['id', 'name'][i % 2]} }`)}`,
    ],
    [
      'many operations with one fragment',
      `query A { pets { id } } ${repeat(150, (i) => `query B${i} { ...F }`)} fragment F on Query { ${repeat(99, (i) => `a${i}: pets(limit: 1) { id }`)} }`,
    ],
    [
      'a free operation beside many',
      `query A { __typename } ${repeat(150, (i) => `query B${i} { ...F }`)} fragment F on Query { ${repeat(99, (i) => `a${i}: pets(limit: 1) { id }`)} }`,
    ],

    [
      'equal fields in equal fields',
      `{ ${repeat(10, () => `pets(limit: 1) { ${repeat(10, () => 'category { id id id }')} }`)} }`,
    ],
    [
      'equal lists in equal fields',
      `{ ${repeat(10, () => `pet(petId: 1) { ${repeat(9, () => 'category { pets(limit: 1) { name } pets(limit: 1) { name } }')} }`)} }`,
    ],
    [
      'as many equal fields in equal fields as are allowed',
      `{ ${repeat(10, () => `pet(petId: 1) { ${repeat(3, () => nest(8, 'id', 'category', 'pets(limit: 1)'))} }`)} }`,
    ],
    ['thousands of equal fields', `{ pets { ${repeat(1_990, () => 'id')} } }`],
    ['equal fields with different arguments', `{ ${repeat(10, (i) => `pet(petId: ${i + 1}) { id }`)} }`],
    ['equal fields with long arguments', `{ ${repeat(10, () => `pets(id: [${repeat(180, () => '1')}]) { id }`)} }`],
    ['inline fragments in inline fragments', `{ ${'... {'.repeat(600)} pets(limit: 1) { id } ${'}'.repeat(600)} }`],

    ['unknown fields', `{ ${repeat(499, (i) => `petx${i}`)} }`],
    ['unknown fields of an object', `{ pet(petId: 1) { ${repeat(499, (i) => `namex${i}`)} } }`.replace('namex499', '')],
    ['unknown fields after many lines', `${lines(60_000)}{ pet(petId: 1) { ${repeat(300, (i) => `x${i}`)} } }`],
    ['unknown fields after 900 lines', `${lines(900)}{ pet(petId: 1) { ${repeat(300, (i) => `x${i}`)} } }`],
    ['unknown types', `{ pets { id } } ${repeat(280, (i) => `fragment F${i} on Pex${i} { id }`)}`],
    ['unknown input fields', `mutation { createPet(input: { ${repeat(600, (i) => `name${i}: 1`)} }) { id } }`],
    ['unused variables', `query (${repeat(190, (i) => `$v${i}: [[[Int]]]`)}) { pets { id } }`],
    [
      'undefined variables',
      `query A { ...F } ${repeat(90, (i) => `query B${i} { ...F }`)} fragment F on Query { ${repeat(99, (i) => `a${i}: pets(limit: $a${i}) { id }`)} }`,
    ],
    ['repeated arguments over 900 lines', `${lines(900)}{ pets(${repeat(600, () => 'limit: 1')}) { id } }`],
    [
      'repeated variables over 900 lines',
      `${lines(900)}query A(${repeat(450, () => '$a: Int')}) { pets(limit: $a) { id } }`,
    ],
    ['repeated directives', `{ pets ${repeat(320, () => '@include(if: true)')} { id } }`],
    ['errors that name many places', `${lines(900)}{ ${repeat(10, () => 'pet(petId: 999999) { id }')} }`],
    ['deep nesting', `{ ${nest(650, 'id', 'pets', 'category')} }`],
    ['brackets that never close', '{a'.repeat(30_000)],
    ['lists in lists', `{ pets(id: ${'['.repeat(900)}${']'.repeat(900)}) { id } }`],
    ['objects in objects', `mutation { createPet(input: ${'{name:'.repeat(400)}1${'}'.repeat(400)}) { id } }`],

    ['a long name', `{ ${'a'.repeat(65_000)} }`],
    ['long type names', `{ ${repeat(10, (i) => `... on ${'P'.repeat(6_000)}${i} { id }`)} }`],
    ['a long number', `{ pet(petId: ${'9'.repeat(65_000)}) { id } }`],
    ['a long string', `{ pets(status: "${'a'.repeat(65_000)}") { id } }`],
    ['a syntax error that repeats escapes', `{"""${'\\"'.repeat(31_000)}\\\n"""`],
    ['a string of escapes', `{ pets(status: "${'\\u0041'.repeat(10_800)}") { id } }`],
    ['a block string of many lines', `{ pets(status: """${'\n '.repeat(32_000)}""") { id } }`],
    ['many comments', `{ pets(limit: 1) { id } } ${'#\n'.repeat(32_000)}`],
    ['many commas', `{ pets(limit: 1) { id } ${','.repeat(65_000)} }`],
    ['a document of 128 KiB', `# ${'a'.repeat(130_000)}`],

    ['many ids', 'query ($id: [Int64!]) { pets(id: $id) { id } }', { id: Array(20_000).fill(1) }],
    ['many wrong ids', 'query ($id: [Int64!]) { pets(id: $id) { id } }', { id: Array(20_000).fill('x') }],
    ['many variables that nothing uses', '{ pets(limit: 1) { id } }', { id: Array(20_000).fill('x') }],
  ] as [string, string, object?][]),
]

/** The body of a request. A comment makes each document new, so that nothing known of an earlier one helps. */
export const requestOf = (query: string, number: number, variables?: object) => ({
  query: `${query}#${number}`,
  variables,
  operationName: /^\s*query A\b/.test(query) ? 'A' : undefined,
})

/** A gateway with rows to read. */
export async function openTarget(): Promise<Gateway> {
  const gateway = await openGateway()
  await gateway.prisma.category.createMany({ data: [{ name: 'Cats', description: 'c'.repeat(1000) }] })
  const pet = { name: 'Tom', categoryId: 1n }
  await gateway.prisma.pet.createMany({ data: Array.from({ length: 100 }, () => pet) })
  await gateway.prisma.order.createMany({
    data: Array.from({ length: 2_000 }, (_, i) => ({ petId: BigInt((i % 100) + 1) })),
  })
  return gateway
}
