import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

// What somebody writes who adds a Customer as CONTRIBUTING.md says.

/** In prisma/schema.prisma. */
const model = `
/// Somebody who buys pets.
model Customer {
  /// Unique identifier assigned by the service on creation.
  id         BigInt    @id @default(autoincrement())
  /// The customer's name.
  name       String
  /// The customer's e-mail address, which no other customer has.
  email      String    @unique
  /// The customer's phone number.
  phone      String?   @map("telephone")
  /// Id of the category that the customer asks for most.
  categoryId BigInt?
  /// The category that the customer asks for most.
  category   Category? @relation(fields: [categoryId], references: [id], onDelete: Restrict)

  @@map("customers")
}
`

/** schema/customer.ts */
export const resource = `
import { Category } from './category.js'
import { builder, columnDescription, expandable } from './kit/builder.js'
import { name, storable } from './kit/input/rules.js'
import { addList, addListBelow, beginsWith, defineList, equals } from './kit/lists/define.js'
import { Node } from './kit/node.js'
import type { Tag } from './kit/plugin.js'
import { toOne } from './kit/relations.js'
import { defineResource } from './kit/resource.js'

const tag: Tag = { name: 'Customers', description: 'The people who buy pets.' }

const Customer = builder.prismaObject('Customer', {
  interfaces: [Node],
  fields: (t) => ({
    id: t.expose('id', { type: 'Int64' }),
    name: t.exposeString('name', { example: 'Ada' }),
    email: t.exposeString('email', { example: 'ada@example.com' }),
    phone: t.exposeString('phone', { nullable: true, example: '+44 20 7946 0000' }),
    categoryId: t.expose('categoryId', { type: 'Int64', nullable: true, example: 2 }),
    category: t.field({
      ...expandable,
      type: Category,
      nullable: true,
      description: columnDescription('Customer', 'category'),
      example: { id: 2, name: 'Cats', description: 'Indoor and outdoor cats, kittens included.' },
      ...toOne('Category', 'id', 'categoryId'),
    }),
  }),
})

const customers = defineList({
  model: 'Customer',
  type: Customer,
  name: 'customers',
  key: 'id',
  filters: {
    search: beginsWith('name', { type: 'String', validate: name, description: 'Only those whose name begins with this.', example: 'Al' }),
    categoryId: equals('categoryId', { type: 'Int64', description: 'Only those who ask for this category.', example: 2 }),
  },
  sorts: ['name'],
  textKeys: { name: 'plainName' },
  indexes: [[], ['name'], ['categoryId']],
})
addList(customers, { description: 'The customers', rest: { method: 'GET', path: '/customers', tag, summary: 'List customers' } })
addListBelow(customers, Category, 'categoryId', 'The customers who ask for the category')

const email = storable
  .max(254, 'must have at most 254 characters')
  .regex(/^[^\\s@]+@[^\\s@.]+(\\.[^\\s@.]+)+$/, 'must be an e-mail address')
const text = { validate: name }
const columns = { name: text, email: { validate: email, example: 'grace@example.com' }, phone: text, categoryId: {} }
const customer = defineResource({ model: 'Customer', type: Customer, path: '/customers', tag, columns })

builder.queryField('customer', customer.get({ rest: { stability: 'beta' } }))
builder.mutationField('createCustomer', customer.create())
builder.mutationField('createCustomers', customer.createMany())
builder.mutationField('updateCustomer', customer.update())
builder.mutationField('updateCustomers', customer.updateMany())
builder.mutationField('deleteCustomer', customer.delete({ example: { id: 5, name: 'Alan', email: 'alan@example.com', categoryId: 2 } }))
`

/** Rows of the sample data: in prisma/seed.ts. */
const samples = `
const customers = [
  { name: 'Ada', email: 'ada@example.com', phone: '+44 20 7946 0000', categoryId: 2n },
  { name: 'Zoe', email: 'zoe@example.com' },
  { name: 'Cleo', email: 'cleo@example.com', categoryId: 3n },
  { name: 'Alma', email: 'alma@example.com', categoryId: 2n },
  { name: 'Alan', email: 'alan@example.com', categoryId: 2n },
]
`

/** test/resources/customer.ts */
const cases = `
import { type Bounds, conditional, type Resource } from './resource.js'

const text: Bounds = {
  accepted: ['x', 'x'.repeat(100)],
  rejected: [
    ['', '1 to 100'],
    ['x'.repeat(101), '1 to 100'],
  ],
}

const address = (length: number) => 'a'.repeat(length - '@example.com'.length) + '@example.com'

const eve = { name: 'Eve', email: 'eve@example.com' }

export const customer: Resource = {
  table: 'customers',
  rows: \`INSERT INTO customers (name, email, "categoryId") VALUES ('Ada', 'ada@example.com', 2), ('Bob', 'bob@example.com', NULL)\`,
  many: (rows) => [
    \`INSERT INTO customers (name, email, "categoryId") SELECT 'Ada ' || i, i || '@example.com', 1 + i % 3
      FROM generate_series(1, \${rows}) i\`,
  ],
  contents: ({ customer }) => customer.findMany({ orderBy: { id: 'asc' } }),
  cases: {
    customers: [
      ['success', {}],
      ['success', { limit: 1, after: 1, id: [1, 2] }],
      ['success', { id: [1, 2], search: 'a', categoryId: 2, sort: 'name', direction: 'asc' }],
      ['invalid_request', { limit: 0 }],
    ],
    customer: [
      ['success', { customerId: 1 }],
      ['not_found', { customerId: 3 }],
      ['invalid_request', { customerId: -1 }],
    ],
    createCustomer: [
      ['success', { input: eve }],
      ['success', { input: { ...eve, phone: '1', categoryId: 1 } }],
      ['invalid_request', { input: { name: 'Eve' } }],
      ['conflict', { input: { name: 'Eve', email: 'ada@example.com' } }],
      ['unknown_reference', { input: { ...eve, categoryId: 3 } }],
    ],
    createCustomers: [
      ['success', { input: [eve, { ...eve, email: 'max@example.com', phone: '1', categoryId: 1 }] }],
      ['invalid_request', { input: [] }],
      ['conflict', { input: [eve, eve] }],
      ['unknown_reference', { input: [{ ...eve, categoryId: 3 }] }],
    ],
    updateCustomers: [
      ['success', { input: [{ id: 1, ...eve, phone: '1', categoryId: 1 }, { id: 2 }] }],
      ['invalid_request', { input: [{ id: 1 }, { id: 1 }] }],
      ['not_found', { input: [{ id: 3 }] }],
      ['conflict', { input: [{ id: 1, email: 'bob@example.com' }] }],
      ['unknown_reference', { input: [{ id: 1, categoryId: 3 }] }],
    ],
    updateCustomer: [
      ['success', { customerId: 1, input: {} }],
      ['success', { customerId: 1, input: { ...eve, phone: '1', categoryId: 1 } }],
      ['success', { customerId: 1, input: { phone: null } }],
      ['invalid_request', { customerId: 1, input: { name: null } }],
      ['not_found', { customerId: 3, input: {} }],
      ['conflict', { customerId: 1, input: { email: 'bob@example.com' } }],
      ['unknown_reference', { customerId: 1, input: { categoryId: 3 } }],
      ...conditional({ customerId: 1, input: {} }, { customerId: 3 }),
    ],
    deleteCustomer: [
      ['success', { customerId: 1 }],
      ['invalid_request', { customerId: 0 }],
      ['not_found', { customerId: 3 }],
      ...conditional({ customerId: 1 }, { customerId: 3 }),
    ],
  },
  bounds: {
    phone: text,
    email: {
      accepted: [address(254)],
      rejected: [
        [address(255), '254'],
        ['ada', 'e-mail address'],
        ['', 'e-mail address'],
      ],
    },
  },
  values: { email: 'max@example.com' },
}
`

const edit = async (path: string, change: (text: string) => string) =>
  writeFile(path, change(await readFile(path, 'utf8')))

/** Adds it to a tree: all but what commands write. */
export async function addCustomer(folder: string) {
  await edit(
    join(folder, 'prisma/schema.prisma'),
    (text) => text.replace('Pet[]\n', '$&  customers   Customer[]\n') + model,
  )
  await writeFile(join(folder, 'schema/customer.ts'), resource)
  await edit(join(folder, 'schema/index.ts'), (text) =>
    text.replace("import './inventory.js'", "import './customer.js'\n$&"),
  )
  await edit(join(folder, 'prisma/seed.ts'), (text) =>
    text
      .replace('/** Adds sample data', `${samples.trimStart()}\n$&`)
      .replace('      return true\n', '      await tx.customer.createMany({ data: customers })\n$&'),
  )
  await writeFile(join(folder, 'test/resources/customer.ts'), cases)
  await edit(join(folder, 'test/resources/index.ts'), (text) =>
    text
      .replace('import { inventory }', "import { customer } from './customer.js'\n$&")
      .replace('{ category, pet,', '{ category, pet, customer,'),
  )
}
