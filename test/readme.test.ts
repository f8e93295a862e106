import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { catalogue } from '../schema/kit/errors.js'
import { plans } from '../schema/kit/plans.js'
import { settings } from '../src/settings.js'
import { codeBlocks, pages, section, table } from './support/markdown.js'

const packageJson = JSON.parse(readFileSync('package.json', 'utf8'))

describe('README and docs match the code', () => {
  test('docs/settings.md has every setting, with its default', () => {
    const defaults = Object.entries(settings.shape).map(([name, setting]) => {
      const value: unknown = setting.parse(undefined)
      const shown = value instanceof Date ? value.toISOString().slice(0, 10) : Array.isArray(value) ? value[0] : value
      return [name, shown]
    })
    const rows = pages.get('docs/settings.md')?.matchAll(/^\| `([A-Z_]+)` \| (.*?) \| .+ \|$/gm) ?? []
    const documented = [...rows].map(([, name, value]) => [
      name,
      // These have no fixed default: the table says what happens without them.
      value?.startsWith('none') || value?.includes('{') ? undefined : value?.replaceAll('`', ''),
    ])
    expect(documented.sort()).toEqual(
      defaults.map(([name, value]) => [name, value === undefined ? undefined : String(value)]).sort(),
    )
  })

  test('every setting that the README names exists', () => {
    const named = table('README.md', 'Settings', 'setting').flatMap(([names]) => names?.split(', ') ?? [])
    expect(named).toContain('DATABASE_URL')
    expect(Object.keys(settings.shape)).toEqual(expect.arrayContaining(named))
  })

  test('docs/specification.md has every error, with its status', () => {
    const rows = table('docs/specification.md', 'Errors', 'status')
    expect(rows.map(([status, code]) => [code, Number(status)])).toEqual(
      Object.entries(catalogue).map(([code, { status }]) => [code, status]),
    )
  })

  test.each([
    ['README.md', 'Keys and plans'],
    ['docs/specification.md', 'Limits'],
  ])('%s has the limits of every plan', (page, heading) => {
    const number = (cell: string | undefined) => Number(cell?.replaceAll(',', ''))
    const documented = table(page, heading, 'plan').filter(([plan]) => plan !== 'Enterprise')
    expect(
      Object.fromEntries(documented.map(([plan, minute, day]) => [plan, { minute: number(minute), day: number(day) }])),
    ).toEqual({ Free: plans.Free, Pro: plans.Pro, Business: plans.Business })
  })

  test('CONTRIBUTING.md has every script, and no page names one that does not exist', () => {
    const scripts = Object.keys(packageJson.scripts).filter((name) => !name.startsWith('check:'))
    const listed = table('CONTRIBUTING.md', 'Commands', 'command').map(([name]) => name?.replace(/^npm (run )?/, ''))
    expect(listed.sort()).toEqual(scripts.sort())
    for (const [page, text] of pages)
      for (const [command, name] of text.matchAll(/npm run (?:--silent )?([\w:]+)/g))
        expect(scripts, `${page}: ${command}`).toContain(name)
  })

  test('docs/architecture.md has every dependency, with its purpose', () => {
    const named = table('docs/architecture.md', 'Dependencies', 'dependency').flatMap(
      ([names]) => names?.split(', ') ?? [],
    )
    expect(named.sort()).toEqual(Object.keys(packageJson.dependencies).sort())
  })

  test('the tree of docs/architecture.md has every folder of the sources, and nothing that does not exist', () => {
    const [tree] = codeBlocks(section('docs/architecture.md', 'The tree')).map(({ code }) => code)
    const above: { indent: number; folder: string }[] = []
    const named: string[] = []
    for (const line of tree?.split('\n') ?? []) {
      const [, { length: indent } = '', names = ''] = /^( *)((?:\S+ )*\S+)/.exec(line) ?? []
      while ((above.at(-1)?.indent ?? -1) >= indent) above.pop()
      const paths = names
        .split(' ')
        .filter((name) => /^[\w./-]+(\/|\.(ts|mjs|prisma|yaml|graphql))$/.test(name))
        .map((name) => join(above.at(-1)?.folder ?? '', name))
      named.push(...paths)
      if (paths[0]?.endsWith('/')) above.push({ indent, folder: paths[0] })
    }
    expect(named.filter((path) => !existsSync(path))).toEqual([])
    const folders = ['schema', 'src'].flatMap((root) =>
      readdirSync(root, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isDirectory())
        .map(({ parentPath, name }) => `${join(parentPath, name)}/`),
    )
    expect(folders.filter((folder) => !named.includes(folder))).toEqual([])
  })

  test('each engine has a page about itself, whose examples its own tests execute', () => {
    const engines = readdirSync('src/engines')
    expect(engines).toContain('executor')
    for (const name of engines) {
      const folder = join('src/engines', name)
      const page = readFileSync(join(folder, 'README.md'), 'utf8')
      for (const part of ['What it buys', 'Interface', 'Guarantees']) expect(page, name).toContain(`## ${part}\n`)
      expect(page, name).toContain(`npx vitest run src/engines/${name}`)
      const tests = readFileSync(join(folder, `${name}.test.ts`), 'utf8')
      const executed = tests.replaceAll(/^ +/gm, '')
      const examples = codeBlocks(page).filter(({ language }) => language === 'ts')
      expect(examples, name).not.toEqual([])
      for (const { code } of examples) expect(executed, name).toContain(code.replaceAll(/^ +/gm, '').trim())
    }
  })

  test('the declaration that the README shows is in the schema', () => {
    const [shown] = codeBlocks(section('README.md', 'How it works')).map(({ code }) => code)
    const declared = readFileSync('schema/category.ts', 'utf8')
    expect(declared.includes(shown ?? ''), 'copy the resource of schema/category.ts into the README').toBe(true)
    expect(shown).toContain('defineResource(')
  })

  test('docs/decisions/README.md has every record, with its status and date', () => {
    const records = [...pages].filter(([page]) => /^docs\/decisions\/\d/.test(page))
    for (const [page, text] of records) {
      const name = page.replace('docs/decisions/', '')
      const [, title] = /^# (.+)\n/.exec(text) ?? []
      const [, status, date] = /^Status: ((?:accepted|superseded).*)\. Date: (\d{4}-\d\d-\d\d)\./m.exec(text) ?? []
      expect(pages.get('docs/decisions/README.md')?.split('\n')).toContain(
        `| [${name.slice(0, 4)}](${name}) | ${title} | ${status} | ${date} |`,
      )
    }
    expect(records.length).toBeGreaterThan(10)
  })

  test('every released version in CHANGELOG.md has a date', () => {
    const headings = [...(pages.get('CHANGELOG.md') ?? '').matchAll(/^## (.+)$/gm)].map(([, heading]) => heading)
    expect(headings[0]).toBe('Unreleased')
    for (const heading of headings.slice(1)) expect(heading).toMatch(/^\d+\.\d+\.\d+ - \d{4}-\d\d-\d\d$/)
    expect(headings[1]).toContain(packageJson.version)
  })

  test('.editorconfig agrees with biome.json', () => {
    const { indentStyle, indentWidth, lineWidth } = JSON.parse(readFileSync('biome.json', 'utf8')).formatter
    const written = Object.fromEntries(
      readFileSync('.editorconfig', 'utf8')
        .split('\n[*.md]')[0]
        ?.split('\n')
        .map((line) => line.split(' = ')) ?? [],
    )
    expect([written.indent_style, written.indent_size, written.max_line_length]).toEqual([
      indentStyle,
      String(indentWidth),
      String(lineWidth),
    ])
  })
})
