import Table from 'cli-table3'
import { codePoints } from '../../schema/kit/input/rules.js'

// Output of the command line: tables, or JSON for programs.

/** The width of a new terminal. */
export const TERMINAL = 80

export type Fields = Record<string, unknown>

const codeOf = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`

/**
 * A text from the database with what a terminal obeys or does not show escaped as in JSON: control and format characters,
 * overrides of the direction, ends of lines.
 */
export const visible = (value: string) =>
  value.replace(/[\p{C}\p{Zl}\p{Zp}]/gu, (character) => character.replace(/./gs, codeOf))

export const text = (value: unknown) =>
  value instanceof Date ? value.toISOString().replace('.000Z', 'Z') : visible(String(value ?? '–'))

// No lines between rows: they make a long table harder to read.
const plain = { style: { head: [], border: [] }, chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' } }

/** Options that wrap the fields of a key where one is too long for a line. A secret is not, so that it can be copied. */
function wrapping(fields: Fields) {
  const width = TERMINAL - Math.max(...Object.keys(fields).map((name) => name.length)) - 7
  const values = Object.values(fields).map(text)
  const isTooLong = (value: string) => codePoints(value) > width
  if (!values.some(isTooLong)) return {}
  const hasLongWord = values.some((value) => value.split(' ').some(isTooLong))
  return { colWidths: [null, width + 2], wordWrap: true, wrapOnWordBoundary: !hasLongWord }
}

/** A table of several keys, or of the fields of one. */
export function render(rows: Fields | Fields[], json: boolean | undefined, columns?: string[]): string {
  if (json) return `${visible(JSON.stringify(rows))}\n`
  if (Array.isArray(rows) && rows.length === 0)
    return 'There are no keys. Create one: npm run keys -- create --name <name> --plan <plan>\n'
  const all = Array.isArray(rows) ? (columns ?? Object.keys(rows[0] ?? {})) : []
  // A column in which no key has a value says nothing.
  const head = all.filter((column) => (rows as Fields[]).some((row) => row[column] != null))
  const lines = Array.isArray(rows) ? rows.map((row) => head.map((column) => row[column])) : Object.entries(rows)
  const table = new Table({ ...plain, head, ...(Array.isArray(rows) ? {} : wrapping(rows)) })
  table.push(...lines.map((line) => line.map(text)))
  return `${table}\n`
}

export const bar = (used: number, limit: number) => {
  const filled = Math.min(10, Math.ceil((used / limit) * 10))
  return `${'█'.repeat(filled)}${'░'.repeat(10 - filled)} ${used}/${limit}`
}

/** A text on one line, cut to a width. */
export const line = (value: string, width: number) => {
  const characters = [...visible(value)]
  return characters.length > width ? `${characters.slice(0, width - 1).join('')}…` : characters.join('')
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
    .map((title, i) => Math.max(title.length, ...rows.map((row) => [...(row[i] ?? '')].length)))
  const used = widths.reduce((total, width) => total + width + 2, 0)
  const noLines = Object.keys(new Table().options.chars).map((name) => [name, ''])
  const table = new Table({
    style: { head: [], border: [], 'padding-left': 0, 'padding-right': 0 },
    chars: { ...Object.fromEntries(noLines), middle: '  ' },
    colWidths: [...widths, Math.max(20, TERMINAL - used)],
    colAligns: head.map((title) => (right.includes(title) ? 'right' : 'left')),
    wordWrap: true,
  })
  table.push(head, ...rows)
  return `${table.toString().replaceAll(/ +$/gm, '')}\n`
}

/** The line above what is shown about a key. */
export const titleOf = ({ id, name, prefix }: { id: number; name: string; prefix: string }) =>
  `Key ${id}, ${line(name, 40)} (${prefix})`
