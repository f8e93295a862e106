import { readFileSync, writeFileSync } from 'node:fs'
import { pathToFileURL } from 'node:url'
import '../../../schema/index.js'
import type { List } from '../../../schema/kit/lists/arguments.js'
import { lists } from '../../../schema/kit/lists/define.js'
import { type Given, planOf } from '../../../schema/kit/lists/plan.js'
import { keyOf, models } from '../../../schema/kit/model.js'
import { createTables } from '../../../src/engines/postgres/index.js'

// Writes the tables of docs/lists.md: which questions a list answers, and by which index.

const subsets = (names: string[]): string[][] =>
  names.reduce<string[][]>((all, name) => all.concat(all.map((set) => [...set, name])), [[]])

/** Each value of each filter. */
export const combinations = (filters: string[], values: Record<string, unknown[]>) =>
  filters.reduce<Record<string, unknown>[]>(
    (all, name) => {
      const some = values[name]
      if (!some) throw new Error(`The filter ${name} has no values to ask with: add some to test/resources.`)
      return all.flatMap((args) => some.map((value) => ({ ...args, [name]: value })))
    },
    [{}],
  )

export type ListQuestion = ReturnType<typeof questionsOf>[number]

/** Every combination of filters, order and direction. */
export function questionsOf(list: List, parent?: string) {
  const given = (name: string): Given => [name, list.filters[name] ?? { column: name, operator: '=' }]
  const names = Object.keys(list.filters).filter(
    (name) => !parent || (list.filters[name]?.operator === '=' && list.filters[name]?.column !== parent),
  )
  return subsets(names).flatMap((filters) =>
    (parent ? [list.key] : [list.key, ...list.sorts]).flatMap((sort) =>
      (['asc', 'desc'] as const).map((direction) => ({
        title: `${filters.join(', ') || 'all'} by ${sort} ${direction}`,
        filters,
        sort,
        direction,
        answer: planOf(list, [...(parent ? [given(parent)] : []), ...filters.map(given)], sort),
      })),
    ),
  )
}

const { ownerOf } = createTables({ models, enums: {}, mapped: {} })

function tableOf({ list, parent }: { list: List; parent?: string }): string {
  const sorts = parent ? [list.key] : [list.key, ...list.sorts]
  const questions = questionsOf(list, parent).filter(({ direction }) => direction === 'asc')
  const cell = (filters: string, sort: string) => {
    const found = questions.find((question) => question.filters.join() === filters && question.sort === sort)?.answer
    if (!found) return 'refused'
    const owner = found.byOwner ? ownerOf(list.model) : undefined
    const columns = [...found.index, owner ? keyOf(owner).name : list.key].map((column) =>
      found.partitions.includes(column) ? `(${column})` : column,
    )
    return (owner ? `${owner}: ` : '') + columns.join(', ')
  }
  const filters = [...new Set(questions.map((question) => question.filters.join()))]
  const rows = filters.map((set) => [
    set
      .split(',')
      .filter(Boolean)
      .map((name) => `\`${name}\``)
      .join(' ') || 'none',
    ...sorts.map((sort) => cell(set, sort)),
  ])
  return [
    `### \`${list.name}\`${parent ? ` below the row of \`${parent}\`` : ''}`,
    '',
    `| filters | ${sorts.map((sort) => `by \`${sort}\``).join(' | ')} |`,
    `|---|${sorts.map(() => '---|').join('')}`,
    ...rows.map((row) => `| ${row.join(' | ')} |`),
  ].join('\n')
}

export const listTables = () => lists.map(tableOf).join('\n\n')

if (import.meta.url === pathToFileURL(process.argv[1] ?? '').href) {
  const text = readFileSync('docs/lists.md', 'utf8')
  writeFileSync('docs/lists.md', `${text.slice(0, text.indexOf('### `'))}${listTables()}\n`)
}
