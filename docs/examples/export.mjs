// Exports pets, orders or stock counts to a CSV file, page by page. Needs petstore.mjs beside it.
import {
  accessSync,
  constants,
  createReadStream,
  createWriteStream,
  existsSync,
  mkdtempSync,
  rmSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { parseArgs } from 'node:util'
import { fail, readArguments, readPages, say } from './petstore.mjs'

const HELP = `Usage: node export.mjs pets|orders|stock FILE [SEPARATOR] [--FILTER VALUE …]

  pets    id, name, category, status
          filters: --status, --categoryId, --inStock true|false, --search (how the name begins)
  orders  id, petId, name (of the pet), quantity, shipDate, complete
          filters: --petId, --complete true|false, --shipDateFrom, --shipDateBefore
  stock   petId, name, status, quantity
          filters: --status, --categoryId, --minQuantity, --maxQuantity

import.mjs reads the files of pets and stock. The complete orders with a ship date in November:

  node export.mjs orders november.csv --complete true --shipDateFrom 2026-11-01 --shipDateBefore 2026-12-01

Dates begin at midnight in UTC, and shipDate is in UTC. For another moment, write 2026-11-01T00:00:00+01:00. An order without
a ship date is in no month.
SEPARATOR stands between cells: a comma (default), a semicolon, which Excel in most of Europe expects, or tab.

Environment: PETSTORE_URL, such as https://petstore.example/v1, and PETSTORE_KEY.
Exit codes: 0 all is exported, 1 the service refused a request, or the file cannot be written, 2 wrong call,
3 no answer from the service.`

/**
 * What can be exported. `expand` names the related object that has the names. A filter has the order that it needs, if it needs one.
 */
const KINDS = {
  pets: {
    list: '/pets',
    filters: { status: '', categoryId: '', inStock: '', search: 'name' },
    expand: 'category',
    columns: ['id', 'name', 'category', 'status'],
    row: ({ id, name, category, status }) => [id, name, category.name, status],
  },
  orders: {
    list: '/store/orders',
    filters: { petId: '', complete: '', shipDateFrom: 'shipDate', shipDateBefore: 'shipDate' },
    expand: 'pet',
    columns: ['id', 'petId', 'name', 'quantity', 'shipDate', 'complete'],
    row: ({ id, petId, pet, quantity, shipDate, complete }) => [id, petId, pet.name, quantity, shipDate, complete],
  },
  stock: {
    list: '/inventory',
    filters: { status: '', categoryId: '', minQuantity: 'quantity', maxQuantity: 'quantity' },
    expand: 'pet',
    columns: ['petId', 'name', 'status', 'quantity'],
    row: ({ petId, pet, status, quantity }) => [petId, pet.name, status, quantity],
  },
}
const SEPARATORS = new Map([...',;\t'].map((separator) => [separator, separator])).set('tab', '\t')

const wrongCall = (reason) => fail(2, `${reason}\n\n${HELP}`)

const [kind, ...args] = readArguments(HELP)
if (!Object.hasOwn(KINDS, kind ?? '')) wrongCall('First say what to export: pets, orders or stock.')
const { list, filters, expand, columns, row } = KINDS[kind]

function readCall() {
  // A filter that is repeated is sent as often: the service refuses it.
  const option = { type: 'string', multiple: true }
  const options = Object.fromEntries(Object.keys(filters).map((name) => [name, option]))
  try {
    return parseArgs({ args, options, allowPositionals: true })
  } catch (error) {
    return wrongCall(error.message.split(/[.\n]/)[0])
  }
}
const { values, positionals } = readCall()
const [file, separatorName = ',', ...more] = positionals
const separator = SEPARATORS.get(separatorName)
if (!file) wrongCall('Say which file to write.')
if (!separator) wrongCall(`"${separatorName}" is no separator.`)
if (more.length > 0) wrongCall(`${more.join(' ')}: there are too many arguments.`)

/** A date is its midnight in UTC. What else is written is sent as it is: the service says what it must be. */
const momentOf = (text) => (/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T00:00:00Z` : text)
const question = Object.entries(values).flatMap(([name, texts]) =>
  texts.map((text) => [name, name.startsWith('shipDate') ? momentOf(text) : text]),
)
const sort = Object.keys(values).find((name) => filters[name])
if (sort) question.push(['sort', filters[sort]])
question.push(['expand', expand])

/** A spreadsheet would run a name that begins like a formula. import.mjs removes the apostrophe. */
function cell(value) {
  const text = String(value ?? '').replace(/^(?='*[=+\-@])/, "'")
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
const lines = (rows) => rows.map((row) => `${row.map(cell).join(separator)}\r\n`).join('')

function attempt(work) {
  try {
    return work()
  } catch (error) {
    return fail(1, `${file} cannot be written: ${error.message}`)
  }
}

// The file is written when all rows are there: it has all of them, or stays as it is.
attempt(() => accessSync(existsSync(file) ? file : dirname(file), constants.W_OK))
const folder = attempt(() => mkdtempSync(join(tmpdir(), 'petstore-export-')))
const collected = join(folder, 'rows.csv')
let isKept = false
process.on('exit', () => isKept || rmSync(folder, { recursive: true }))
for (const [signal, code] of Object.entries({ SIGINT: 130, SIGTERM: 143 })) process.on(signal, () => process.exit(code))

const write = (text) => attempt(() => writeFileSync(collected, text, { flag: 'a' }))
// Without a byte order mark, Excel does not read UTF-8.
write(`\uFEFF${lines([columns])}`)
let count = 0
for await (const items of readPages(list, question)) {
  write(lines(items.map(row)))
  count += items.length
}
await pipeline(createReadStream(collected), createWriteStream(file)).catch((error) => {
  isKept = true
  fail(1, `${file} cannot be written: ${error.message}. All rows are in ${collected}`)
})
say(`${count} rows are in ${file}`)
