import Table from 'cli-table3'

// Output of the command line: tables, or JSON for programs.

export type Fields = Record<string, unknown>

export const text = (value: unknown) =>
  value instanceof Date ? value.toISOString().replace('.000Z', 'Z') : String(value ?? '–')

// No lines between rows: they make a long table harder to read.
const plain = { style: { head: [], border: [] }, chars: { mid: '', 'left-mid': '', 'mid-mid': '', 'right-mid': '' } }

export function print(rows: Fields | Fields[], json: boolean | undefined, columns?: string[]) {
  if (json) process.stdout.write(`${JSON.stringify(rows)}\n`)
  else if (Array.isArray(rows)) {
    const head = columns ?? Object.keys(rows[0] ?? {})
    const table = new Table({ ...plain, head })
    for (const row of rows) table.push(head.map((column) => text(row[column])))
    process.stdout.write(
      rows.length > 0
        ? `${table}\n`
        : 'There are no keys. Create one: npm run keys -- create --name <name> --plan <plan>\n',
    )
  } else {
    const table = new Table(plain)
    for (const [name, value] of Object.entries(rows)) table.push([name, text(value)])
    process.stdout.write(`${table}\n`)
  }
}

export const bar = (used: number, limit: number) => {
  const filled = Math.min(10, Math.ceil((used / limit) * 10))
  return `${'█'.repeat(filled)}${'░'.repeat(10 - filled)} ${used}/${limit}`
}
