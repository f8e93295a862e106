import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { catalogue } from '../schema/errors.js'
import { plans } from '../schema/plans.js'
import { settings } from '../src/settings.js'

const readme = readFileSync('README.md', 'utf8')
const packageJson = JSON.parse(readFileSync('package.json', 'utf8'))

/** The rows of the table under a heading, as cells without backticks. */
function table(heading: string): string[][] {
  const section = readme.split(`\n## ${heading}\n`)[1]?.split('\n## ')[0] ?? ''
  const rows = section.split('\n').filter((line) => line.startsWith('|'))
  return rows.slice(2).map((row) =>
    row
      .split('|')
      .slice(1, -1)
      .map((cell) => cell.trim().replaceAll('`', '')),
  )
}

describe('the README matches the code', () => {
  test('every setting, with its default', () => {
    const defaults = Object.entries(settings.shape).map(([name, setting]) => {
      const value: unknown = setting.parse(undefined)
      const shown = value instanceof Date ? value.toISOString().slice(0, 10) : Array.isArray(value) ? value[0] : value
      return [name, shown]
    })
    const documented = table('Settings').map(([name, value]) => [
      name,
      // These three have no fixed default: the table says what happens without them.
      value?.startsWith('none') || value?.includes('{') ? undefined : value,
    ])
    expect(documented.sort()).toEqual(
      defaults.map(([name, value]) => [name, value === undefined ? undefined : String(value)]).sort(),
    )
  })

  test('every error, with its status', () => {
    expect(table('Errors').map(([status, code]) => [code, Number(status)])).toEqual(
      Object.entries(catalogue).map(([code, { status }]) => [code, status]),
    )
  })

  test('the limits of every plan', () => {
    const number = (cell: string | undefined) => Number(cell?.replaceAll(',', ''))
    const documented = table('Keys, plans and bans').filter(([plan]) => plan !== 'Enterprise')
    expect(
      Object.fromEntries(documented.map(([plan, minute, day]) => [plan, { minute: number(minute), day: number(day) }])),
    ).toEqual({ Free: plans.Free, Pro: plans.Pro, Business: plans.Business })
  })

  test('it names every script, and only scripts that exist', () => {
    const named = new Set([...readme.matchAll(/npm (?:run )?([\w:]+)/g)].map(([, name]) => name))
    for (const builtIn of ['ci', 'install']) named.delete(builtIn)
    const scripts = Object.keys(packageJson.scripts).filter((name) => !name.startsWith('check:'))
    expect([...named].sort()).toEqual(scripts.sort())
  })

  test('every dependency, with its purpose', () => {
    const named = table('What it is built on').flatMap(([names]) => names?.split(', ') ?? [])
    expect(named.sort()).toEqual(Object.keys(packageJson.dependencies).sort())
  })

  test('every file in the tree exists', () => {
    const tree = readme.split('\n## The tree\n')[1]?.split('```')[1] ?? ''
    let folder = ''
    const missing: string[] = []
    for (const line of tree.split('\n').slice(1)) {
      const [, indent = '', rest = ''] = /^( *)(.*)$/.exec(line) ?? []
      for (const name of rest.match(/[\w./-]+\.(?:ts|mjs|prisma|yaml|graphql)\b|[\w-]+(?:\/[\w-]+)*\/(?=\s|$)/g) ??
        []) {
        if (!indent && name.endsWith('/')) folder = name
        const path = !indent ? name : join(folder, name)
        if (!existsSync(path)) missing.push(path)
      }
    }
    expect(tree).toContain('src/')
    expect(missing).toEqual([])
  })
})
