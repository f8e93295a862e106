import Table from 'cli-table3'
import stringWidth from 'string-width'
import wrapAnsi from 'wrap-ansi'

// Output of the command line: tables, or JSON for programs.

/** The width of a new terminal. */
export const TERMINAL = 80

export type Fields = Record<string, unknown>

const codeOf = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * A text from the database with what a terminal obeys or does not show escaped as in JSON: control and format characters,
 * overrides of the direction, ends of lines. Not joiners: words in Persian and some emoji have them.
 */
export const visible = (value: string) =>
  value.replace(/[^\P{C}\u200c\u200d]|[\p{Zl}\p{Zp}]/gu, (character) => character.replace(/./gs, codeOf))

export const text = (value: unknown) =>
  value instanceof Date ? value.toISOString().replace('.000Z', 'Z') : visible(String(value ?? '–'))

// No lines between rows: they make a long table harder to read.
const plain = { style: { head: [], border: [] }, chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' } }

/** A text in lines of a width. Only a word that is longer is broken. */
const wrap = (value: string, width: number) => wrapAnsi(value, width, { hard: true })

/** The fields of a key. A note can be longer than a line of a terminal; a secret is not, so that it can be copied. */
function fieldsOf(fields: Fields): string[][] {
  const names = Object.keys(fields)
  const width = TERMINAL - Math.max(...names.map((name) => name.length)) - '│  │  │'.length
  return names.map((name) => [name, wrap(text(fields[name]), width)])
}

/** A table of several keys, or of the fields of one. */
export function render(rows: Fields | Fields[], json: boolean | undefined, columns?: string[]): string {
  if (json) return `${visible(JSON.stringify(rows))}\n`
  if (Array.isArray(rows) && rows.length === 0)
    return 'There are no keys. Create one: npm run keys -- create --name <name> --plan <plan>\n'
  const all = Array.isArray(rows) ? (columns ?? Object.keys(rows[0] ?? {})) : []
  // A column in which no key has a value says nothing.
  const head = all.filter((column) => (rows as Fields[]).some((row) => row[column] != null))
  const lines = Array.isArray(rows) ? rows.map((row) => head.map((column) => text(row[column]))) : fieldsOf(rows)
  const table = new Table({ ...plain, head })
  table.push(...lines)
  return `${table}\n`
}

export const bar = (used: number, limit: number) => {
  const filled = Math.min(10, Math.ceil((used / limit) * 10))
  return `${'█'.repeat(filled)}${'░'.repeat(10 - filled)} ${used}/${limit}`
}

/** A text on one line, cut to a width. */
export function line(value: string, width: number): string {
  const shown = visible(value)
  if (stringWidth(shown) <= width) return shown
  const [first] = wrapAnsi(shown, width - 1, { hard: true, wordWrap: false }).split('\n')
  return `${first}…`
}

const BARS = [...'▁▂▃▄▅▆▇█']

/** A bar for each value, relative to the largest; a dot for 0. */
export const sparkline = (values: number[]) =>
  values.map((value) => (value > 0 ? BARS[Math.ceil((value / Math.max(...values)) * BARS.length) - 1] : '·')).join('')

/**
 * Columns without lines, for at most 80 columns of a terminal; the last one is wrapped.
 *
 * @param right the columns that are aligned to the right
 */
export function renderColumns(head: string[], rows: string[][], right: string[] = []): string {
  const widths = head
    .slice(0, -1)
    .map((title, i) => Math.max(title.length, ...rows.map((row) => stringWidth(row[i] ?? ''))))
  const used = widths.reduce((total, width) => total + width + 2, 0)
  const noLines = Object.keys(new Table().options.chars).map((name) => [name, ''])
  const table = new Table({
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    chars: { ...Object.fromEntries(noLines), middle: '  ' },
    colAligns: head.map((title) => (right.includes(title) ? 'right' : 'left')),
  })
  const width = Math.max(20, TERMINAL - used)
  table.push(head, ...rows.map((row) => row.map((cell, i) => (i === widths.length ? wrap(cell, width) : cell))))
  return `${table.toString().replaceAll(/ +$/gm, '')}\n`
}

/** The line above what is shown about a key. */
export const titleOf = ({ id, name, prefix }: { id: number; name: string; prefix: string }) =>
  `Key ${id}, ${line(name, 40)} (${prefix})`
