import { execFile, execFileSync } from 'node:child_process'
import { copyFile, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { parse, stringify } from 'yaml'

const committed = parse(await readFile('openapi.yaml', 'utf8'))

test('the committed contract is what `npm run contract` writes', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'contract-'))
  await promisify(execFile)(process.execPath, ['--import', 'tsx', 'src/admin/contract.ts', folder])
  for (const file of ['openapi.yaml', 'schema.graphql'])
    expect(await readFile(file, 'utf8'), file).toBe(await readFile(join(folder, file), 'utf8'))
})

describe('npm run contract:breaking', () => {
  let folder: string
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=ci', '-c', 'user.email=ci@petstore.example', ...args], { cwd: folder })
  beforeAll(async () => {
    folder = await mkdtemp(join(tmpdir(), 'breaking-'))
    git('init', '--quiet')
    git('commit', '--quiet', '--allow-empty', '--message', 'nothing')
    for (const file of ['openapi.yaml', 'schema.graphql']) await copyFile(file, join(folder, file))
    git('add', '.')
    git('commit', '--quiet', '--message', 'contract')
  })
  afterAll(() => rm(folder, { recursive: true }))

  const tool = resolve('test/lab/tools/breaking.ts')
  const run = (...args: string[]) =>
    new Promise<{ code: unknown; stdout: string; stderr: string }>((done) => {
      const options = { cwd: folder }
      execFile(
        process.execPath,
        ['--import', import.meta.resolve('tsx'), tool, ...args],
        options,
        (error, stdout, stderr) => done({ code: error?.code ?? 0, stdout, stderr }),
      )
    })
  const change = (edit: (document: typeof committed) => void) => {
    const document = structuredClone(committed)
    edit(document)
    return writeFile(join(folder, 'openapi.yaml'), stringify(document))
  }

  test('prints breaking changes first, and exits with 1', async () => {
    await change((document) => {
      document.info.title = 'Pets'
      document.components.schemas.NewCategory.required.push('description')
      delete document.paths['/quota']
    })
    const { code, stdout } = await run()
    expect(stdout.split('\n')).toEqual([
      expect.stringMatching(/^breaks {2}POST \/categories › .* › required: with "description"$/),
      'breaks  GET /quota › removed',
      expect.stringMatching(/^breaks {2}POST \/categories\/batch › .* › required: with "description"$/),
      'fine    info changed',
      expect.stringContaining('Clients of HEAD break'),
      '',
    ])
    expect(code).toBe(1)
  })

  test('exits with 0 if the major version is higher, nothing breaks, or the commit has no contract', async () => {
    await change((document) => {
      document.info.version = '2.0.0'
      delete document.paths['/quota']
    })
    const [raised, first] = await Promise.all([run(), run('HEAD^')])
    expect(raised.stdout).toContain('breaks  GET /quota › removed')
    expect(raised.code).toBe(0)
    expect(first.stdout).toContain('HEAD^ has no openapi.yaml: nothing to compare it with')
    expect(first.code).toBe(0)
    await change(() => {})
    expect(await run()).toEqual({ code: 0, stdout: 'No client of HEAD breaks.\n', stderr: '' })
  })

  test('exits with 2 and one line if the commit does not exist or a file is unreadable', async () => {
    const unknown = await run('nowhere')
    await writeFile(join(folder, 'openapi.yaml'), 'info: [')
    const broken = await run()
    for (const { code, stdout, stderr } of [unknown, broken]) {
      expect([code, stdout]).toEqual([2, ''])
      expect(stderr).toMatch(/^(nowhere names no commit|openapi\.yaml): .+\n$/)
    }
  })
})
