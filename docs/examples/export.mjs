// Exports pets or stock counts to a CSV file, which import.mjs reads. Needs petstore.mjs beside it.
import { writeFileSync } from 'node:fs'
import { fail, readAll, readArguments, say } from './petstore.mjs'

const HELP = `Usage: node export.mjs pets|stock FILE [SEPARATOR]

  pets   id, name, category, status
  stock  petId, name, status, quantity

SEPARATOR stands between cells (default: a comma). Excel in most of Europe expects ";".

Environment: PETSTORE_URL, such as https://petstore.example/v1, and PETSTORE_KEY.
Exit codes: 0 all is exported, 1 the service refused a request, 2 wrong call, 3 no answer from the service.`

const [kind, file, separator = ','] = readArguments(HELP)
if (!['pets', 'stock'].includes(kind) || !file || !/^[,;\t]$/.test(separator)) fail(2, HELP)

const namesOf = (items) => new Map(items.map(({ id, name }) => [id, name]))

async function readRows() {
  const pets = await readAll('/pets')
  if (kind === 'pets') {
    const categories = namesOf(await readAll('/categories'))
    const rows = pets.map(({ id, name, categoryId, status }) => [id, name, categories.get(categoryId), status])
    return [['id', 'name', 'category', 'status'], ...rows]
  }
  const names = namesOf(pets)
  const stock = await readAll('/inventory')
  const rows = stock.map(({ petId, status, quantity }) => [petId, names.get(petId), status, quantity])
  return [['petId', 'name', 'status', 'quantity'], ...rows]
}

/** A spreadsheet would run a name that begins like a formula. import.mjs removes the apostrophe. */
function cell(value) {
  const text = String(value ?? '').replace(/^(?='*[=+\-@])/, "'")
  return /[",;\t\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

const rows = await readRows()
// Without a byte order mark, Excel does not read UTF-8.
writeFileSync(file, `\uFEFF${rows.map((row) => `${row.map(cell).join(separator)}\r\n`).join('')}`)
say(`${rows.length - 1} rows are in ${file}`)
