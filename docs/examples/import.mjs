// Imports pets or stock counts from a CSV file. Needs petstore.mjs beside it.
import { createHash } from 'node:crypto'
import { readFileSync, renameSync, writeFileSync } from 'node:fs'
import { fail, readAll, readArguments, say, send } from './petstore.mjs'

const HELP = `Usage: node import.mjs pets|stock FILE

  pets   columns: id, name, category (its name or its id), status
         A row with an id changes that pet, where a cell is not empty. A row without an id creates a pet.
  stock  columns: petId, quantity (name and status may be there, and are not read)

The first line names the columns, in any order. Commas, semicolons or tabs separate them. The text is UTF-8.

Rows are imported by the hundred: all of them, or none. If an import was interrupted, or a line was wrong, start it again
with the same file. FILE.progress says which of its rows were created: they are not created again. Rows after them may be
corrected, and added.

Environment: PETSTORE_URL, such as https://petstore.example/v1, and PETSTORE_KEY.
Exit codes: 0 all is imported, 1 something is wrong with the file, or refused, 2 wrong call, 3 no answer from the service.`

const KINDS = {
  pets: { path: '/pets/batch', columns: ['id', 'name', 'category', 'status'] },
  stock: { path: '/inventory/batch', columns: ['petId', 'name', 'status', 'quantity'] },
}
const BATCH = 100

const [kind, file] = readArguments(HELP)
if (!Object.hasOwn(KINDS, kind ?? '') || !file) fail(2, HELP)
const { path, columns } = KINDS[kind]

function readText() {
  try {
    // This also removes a byte order mark.
    return new TextDecoder('utf-8', { fatal: true }).decode(readFileSync(file))
  } catch (error) {
    if (error.code === 'ERR_ENCODING_INVALID_ENCODED_DATA') fail(1, `${file} is not UTF-8: save it as “CSV UTF-8”.`)
    fail(1, `${file} cannot be read: ${error.message}`)
  }
}

/** The rows of a CSV text (RFC 4180) that are not empty, each with the line on which it begins. */
function readRows(text) {
  const separator = /[,;\t]/.exec(text)?.[0] ?? ','
  const cell = new RegExp(`(?:"([^"]*(?:""[^"]*)*)"|([^"${separator}\r\n]*))(${separator}|\r\n|\r|\n|$)`, 'y')
  const rows = []
  for (let line = 1; cell.lastIndex < text.length; ) {
    const row = { line, cells: [] }
    for (let end = separator; end === separator; ) {
      const match = cell.exec(text)
      if (!match) fail(1, `Line ${line}: a quotation mark is missing, or something stands beside it.`)
      const [all, quoted, plain] = match
      end = match[3]
      line += all.match(/\r\n|\r|\n/g)?.length ?? 0
      // export.mjs puts an apostrophe before what a spreadsheet would run as a formula.
      row.cells.push((quoted?.replaceAll('""', '"') ?? plain).trim().replace(/^'(?='*[=+\-@])/, ''))
    }
    if (row.cells.some((text) => text !== '')) rows.push(row)
  }
  return rows
}

const hashOf = (value) => createHash('sha256').update(JSON.stringify(value)).digest('hex')

/** How many rows of the file were created, and what they were. */
function readProgress() {
  try {
    return JSON.parse(readFileSync(`${file}.progress`, 'utf8'))
  } catch (error) {
    if (error.code === 'ENOENT') return { created: 0, hash: hashOf([]) }
    fail(1, `${file}.progress cannot be read: ${error.message}`)
  }
}

/** Whole or not at all, whenever the script is ended. */
function writeProgress(progress) {
  try {
    writeFileSync(`${file}.progress.new`, JSON.stringify(progress))
    renameSync(`${file}.progress.new`, `${file}.progress`)
  } catch (error) {
    fail(1, `${file}.progress cannot be written: ${error.message}. Copy ${file} to a folder in which you may write.`)
  }
}

const problems = []
const [header = { cells: [] }, ...rows] = readRows(readText())
const names = header.cells.map((name) => columns.find((known) => known.toLowerCase() === name.toLowerCase()))
const unknown = header.cells.filter((_, place) => !names[place])
const needed = kind === 'stock' ? ['petId', 'quantity'] : names.includes('id') ? [] : ['name', 'category']
const repeated = names.find((name, place) => name && names.indexOf(name) < place)
if (repeated) problems.push(`There are two columns ${repeated}.`)
if (unknown.length > 0) problems.push(`Unknown columns: ${unknown.join(', ')}. Known are ${columns.join(', ')}.`)
for (const name of needed) if (!names.includes(name)) problems.push(`There is no column ${name}.`)
if (rows.length === 0) problems.push('There are no rows.')

const categories = names.includes('category') ? await readAll('/categories') : []

function categoryId(text, line) {
  const named = categories.filter(({ name }) => name.toLowerCase() === text.toLowerCase())
  const found = named[0] ?? categories.find(({ id }) => String(id) === text)
  if (named.length > 1) problems.push(`Line ${line}: ${named.length} categories are called ${text}; write the id.`)
  if (!found) problems.push(`Line ${line}: there is no category ${text}.`)
  return found?.id
}

/** What else is sent is sent as it is: the service says what it must be. */
const number = (text) => (/^\d+$/.test(text) ? Number(text) : text)

function itemOf({ line, cells }) {
  if (cells.length !== names.length)
    problems.push(`Line ${line} has ${cells.length} cells; the first line has ${names.length}.`)
  const row = Object.fromEntries(names.map((name, place) => [name, cells[place]]))
  if (kind === 'stock') return { petId: number(row.petId), quantity: number(row.quantity) }
  return {
    id: row.id ? number(row.id) : undefined,
    name: row.name || undefined,
    categoryId: row.category ? categoryId(row.category, line) : undefined,
    status: row.status || undefined,
  }
}

const entries = problems.length === 0 ? rows.map((row) => ({ line: row.line, item: itemOf(row) })) : []
if (problems.length > 0) fail(1, `${problems.slice(0, 10).join('\n')}\nNothing is imported.`)

const isNew = ({ item }) => kind === 'pets' && item.id === undefined
const created = entries.filter(isNew)
const itemsOf = (some) => some.map(({ item }) => item)
const progress = readProgress()
if (hashOf(itemsOf(created.slice(0, progress.created))) !== progress.hash)
  fail(
    1,
    `${file} has changed in its first ${progress.created} new pets, which were created already. Put other pets into another file, or remove ${file}.progress to create all of this one.`,
  )

const requests = [
  ['POST', created.slice(progress.created)],
  ['PATCH', entries.filter((entry) => !isNew(entry))],
].flatMap(([method, some]) =>
  Array.from({ length: Math.ceil(some.length / BATCH) }, (_, i) => [method, some.slice(i * BATCH, (i + 1) * BATCH)]),
)
// What cannot be noted is not created.
if (created.length > progress.created) writeProgress(progress)
let done = progress.created
if (done > 0) say(`${done} of ${entries.length} rows were created in an earlier run`)
for (const [method, batch] of requests) {
  const items = itemsOf(batch)
  const isPost = method === 'POST'
  await send(path, {
    method,
    body: JSON.stringify(items),
    // If the answer is lost, or the script ends before it has noted it, the same rows have the same key. Changes need none.
    headers: isPost ? { 'Idempotency-Key': hashOf([done, items]) } : {},
    refused(message) {
      // The service names a row by its place in the batch, such as [3].
      const text = message.replace(/\[(\d+)\](\.(?=\w))?/g, (all, i, dot) =>
        batch[i] ? `line ${batch[i].line}${dot ? ': ' : ''}` : all,
      )
      const lines = `${batch[0].line} to ${batch.at(-1).line}`
      fail(1, `${text}\n${done} of ${entries.length} rows are imported, none of those on lines ${lines}.`)
    },
  })
  done += batch.length
  if (isPost) writeProgress({ created: done, hash: hashOf(itemsOf(created.slice(0, done))) })
  say(`${done} of ${entries.length} rows are imported`)
}
if (requests.length === 0) say('There is nothing left to import.')
