// Exports pets, orders or stock counts to a CSV file, page by page. Needs petstore.mjs beside it.
import { closeSync, openSync, renameSync, rmSync, writeFileSync } from 'node:fs'
import { parseArgs } from 'node:util'
import { fail, readArguments, readPages, say, send } from './petstore.mjs'

const HELP = `Usage: node export.mjs pets|orders|stock FILE [SEPARATOR] [--FILTER VALUE …]

  pets    id, name, category, status
          filters: --status, --categoryId, --inStock true|false, --search (how the name begins)
  orders  id, petId, name (of the pet), quantity, shipDate (UTC), complete
          filters: --petId, --complete true|false, --shipDateFrom, --shipDateBefore
  stock   petId, name, status, quantity
          filters: --status, --categoryId, --minQuantity, --maxQuantity

import.mjs reads the files of pets and stock. The orders of November that are complete:

  node export.mjs orders november.csv --complete true --shipDateFrom 2026-11-01 --shipDateBefore 2026-12-01

A date begins at midnight in the time zone of this machine. For another moment, write 2026-11-01T09:00:00Z.
SEPARATOR stands between cells (default: a comma). Excel in most of Europe expects ";".

Environment: PETSTORE_URL, such as https://petstore.example/v1, and PETSTORE_KEY.
Exit codes: 0 all is exported, 1 the service refused a request, or the file cannot be written, 2 wrong call,
3 no answer from the service.`

/**
 * What can be exported: a list, and the list in which the names are of what its items refer to. Each filter has the order in
 * which it is answered, if that is not the order of ids.
 */
const KINDS = {
  pets: {
    list: '/pets',
    filters: { status: '', categoryId: '', inStock: '', search: 'name' },
    named: ['/categories', 'categoryId'],
    columns: ['id', 'name', 'category', 'status'],
    row: ({ id, name, status }, category) => [id, name, category, status],
  },
  orders: {
    list: '/store/orders',
    filters: { petId: '', complete: '', shipDateFrom: 'shipDate', shipDateBefore: 'shipDate' },
    named: ['/pets', 'petId'],
    columns: ['id', 'petId', 'name', 'quantity', 'shipDate', 'complete'],
    row: ({ id, petId, quantity, shipDate, complete }, name) => [id, petId, name, quantity, shipDate, complete],
  },
  stock: {
    list: '/inventory',
    filters: { status: '', categoryId: '', minQuantity: 'quantity', maxQuantity: 'quantity' },
    named: ['/pets', 'petId'],
    columns: ['petId', 'name', 'status', 'quantity'],
    row: ({ petId, status, quantity }, name) => [petId, name, status, quantity],
  },
}

const [kind, ...args] = readArguments(HELP)
if (!Object.hasOwn(KINDS, kind ?? '')) fail(2, HELP)
const { list, filters, named, columns, row } = KINDS[kind]

function readCall() {
  const options = Object.fromEntries(Object.keys(filters).map((name) => [name, { type: 'string' }]))
  try {
    const { values, positionals } = parseArgs({ args, options, allowPositionals: true })
    return [values, ...positionals]
  } catch (error) {
    fail(2, `${error.message.split('. ')[0]}.\n\n${HELP}`)
  }
}
const [values, file, separator = ',', ...more] = readCall()
if (!file || !/^[,;\t]$/.test(separator) || more.length > 0) fail(2, HELP)

/** A date alone begins at midnight here. What else is written is sent as it is: the service says what it must be. */
function momentOf(text) {
  const midnight = new Date(`${text}T00:00`)
  const isDay = /^\d{4}-\d\d-\d\d$/.test(text) && midnight.getDate() === Number(text.slice(8))
  return isDay ? midnight.toISOString() : text
}

const question = Object.fromEntries(
  Object.entries(values).map(([name, text]) => [name, name.startsWith('shipDate') ? momentOf(text) : text]),
)
const sort = Object.keys(values).find((name) => filters[name])
if (sort) question.sort = filters[sort]

/** A spreadsheet would run a name that begins like a formula. import.mjs removes the apostrophe. */
function cell(value) {
  const text = String(value ?? '').replace(/^(?='*[=+\-@])/, "'")
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
const lines = (rows) => rows.map((row) => `${row.map(cell).join(separator)}\r\n`).join('')

/** Written beside the file, which is replaced when all is there. */
const part = `${file}.part`
function attempt(work) {
  try {
    return work()
  } catch (error) {
    fail(1, `${file} cannot be written: ${error.message}`)
  }
}
const output = attempt(() => openSync(part, 'w'))
process.on('exit', () => rmSync(part, { force: true }))
const write = (text) => attempt(() => writeFileSync(output, text))

async function rowsOf(items) {
  const [namedList, reference] = named
  const ids = new Set(items.map((item) => item[reference]))
  if (ids.size === 0) return []
  const { data } = await send(`${namedList}?${new URLSearchParams([...ids].map((id) => ['id', id]))}`)
  const names = new Map(data.map(({ id, name }) => [id, name]))
  return items.map((item) => row(item, names.get(item[reference])))
}

// Without a byte order mark, Excel does not read UTF-8.
write(`\uFEFF${lines([columns])}`)
let count = 0
for await (const items of readPages(list, question)) {
  write(lines(await rowsOf(items)))
  count += items.length
}
closeSync(output)
attempt(() => renameSync(part, file))
say(`${count} rows are in ${file}`)
