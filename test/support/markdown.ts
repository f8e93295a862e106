import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'

// What tests read from Markdown pages.

/** Every page of the project, with its text. */
export const pages = new Map(
  [
    ...readdirSync('.'),
    ...['docs', 'src'].flatMap((root) =>
      readdirSync(root, { recursive: true }).map((name) => join(root, String(name))),
    ),
  ]
    .filter((name) => name.endsWith('.md'))
    .sort()
    .map((name) => [name, readFileSync(name, 'utf8')]),
)

/** The text below a heading of the second level, without the heading. */
export function section(page: string, heading: string): string {
  const text = pages.get(page)?.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0]
  if (text === undefined) throw new Error(`${page} has no section "${heading}"`)
  return text
}

/** The rows of the table in a section that has this first column, as cells without backticks. */
export function table(page: string, heading: string, column: string): string[][] {
  const lines = section(page, heading).split('\n')
  const start = lines.findIndex((line) => line.startsWith(`| ${column} |`))
  const end = lines.findIndex((line, at) => at > start && !line.startsWith('|'))
  if (start < 0) throw new Error(`${page} has no table of "${column}" in "${heading}"`)
  return rowsOf(lines.slice(start, end)).map((row) => row.map((cell) => cell.replaceAll('`', '')))
}

/** The cells of the rows of a table, without its head. */
export const rowsOf = (lines: string[]) =>
  lines.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim()),
  )

/** The code blocks of a text, with their language. */
export const codeBlocks = (text: string) =>
  [...text.matchAll(/^```(\w*)\n([\s\S]*?)^```$/gm)].map(([, language = '', code = '']) => ({ language, code }))

/** A text without its code, which may contain what looks like a link or a heading. */
export const withoutCode = (text: string) => text.replace(/^```[\s\S]*?^```$/gm, '').replace(/`[^`\n]*`/g, '')

/** The anchors of a page, as GitHub makes them from headings. */
export function anchors(text: string): string[] {
  const seen = new Map<string, number>()
  return [...text.replace(/^```[\s\S]*?^```$/gm, '').matchAll(/^#+ (.+)$/gm)].map(([, heading = '']) => {
    const slug = heading
      .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
      .toLowerCase()
      .replace(/[^\p{L}\p{N}\p{M}_ -]/gu, '')
      .replaceAll(' ', '-')
    const count = seen.get(slug) ?? 0
    seen.set(slug, count + 1)
    return count === 0 ? slug : `${slug}-${count}`
  })
}
