import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { buildSchema } from 'graphql'
import { parse } from 'yaml'
import { type Change, graphqlChanges, openApiChanges } from './changes.js'

// npm run contract:breaking [-- REF] says what changed in openapi.yaml and schema.graphql since a commit (HEAD unless
// one is named), what breaks clients first. It ends with 1 when something does and the document's version has the same
// major number as before, and with 2 when it cannot tell.

const [, , ref = 'HEAD'] = process.argv

const git = (...args: string[]) =>
  execFileSync('git', args, { encoding: 'utf8', stdio: 'pipe', maxBuffer: 64 * 1024 * 1024 }).trim()

/** What `read` returns; where it throws, an error with one line that begins with the subject. */
function attempt<T>(subject: string, read: () => T): T {
  try {
    return read()
  } catch (error) {
    const { stderr = '', message } = error as Error & { stderr?: string }
    throw new Error(`${subject}: ${(stderr || message).split('\n')[0]}`)
  }
}

/** A file as the commit has it and as it is here; nothing when the commit does not have it. */
function versions<T>(commit: string, file: string, read: (text: string) => T) {
  const now = attempt(file, () => read(readFileSync(file, 'utf8')))
  if (git('ls-tree', commit, '--', file)) {
    const before = git('show', `${commit}:./${file}`)
    return [attempt(`${file} of ${ref}`, () => read(before)), now] as const
  }
  console.log(`${ref} has no ${file}: nothing to compare it with`)
  return undefined
}

function readOpenApi(text: string) {
  const document = parse(text)
  if (!Number.isInteger(major(document)) || !document.paths) throw new Error('not an OpenAPI document with a version')
  return document
}

const major = (document: { info?: { version?: unknown } } | null) =>
  Number.parseInt(String(document?.info?.version), 10)

/** What many operations share changes in each of them, and is said once. */
function lines(changes: Change[]): string[] {
  const alike = new Map<string, Change[]>()
  for (const change of changes) {
    const key = `${change.place.at(-1)}: ${change.what}`
    alike.set(key, [...(alike.get(key) ?? []), change])
  }
  return [...alike.values()].map((same) => {
    const [first] = same as [Change, ...Change[]]
    const others = same.length > 1 ? ` (and in ${same.length - 1} more places)` : ''
    return `${[...first.place, first.what].join(' › ')}${others}`
  })
}

function main() {
  const commit = attempt(`${ref} names no commit`, () =>
    git('rev-parse', '--verify', '--end-of-options', `${ref}^{commit}`),
  )
  const rest = versions(commit, 'openapi.yaml', readOpenApi)
  const graphql = versions(commit, 'schema.graphql', buildSchema)
  const changes = [...(rest ? openApiChanges(...rest) : []), ...(graphql ? graphqlChanges(...graphql) : [])]
  const breaking = lines(changes.filter(({ breaks }) => breaks))
  for (const line of breaking) console.log(`breaks  ${line}`)
  for (const line of lines(changes.filter(({ breaks }) => !breaks))) console.log(`fine    ${line}`)

  const [before, after] = rest ?? []
  const mayBreak = rest && major(after) > major(before)
  if (breaking.length === 0) console.log(`No client of ${ref} breaks.`)
  else if (mayBreak) console.log(`Clients of ${ref} break, as version ${after.info.version} says.`)
  else console.log(`Clients of ${ref} break: keep what they need, or give the API a new major version.`)
  return breaking.length > 0 && !mayBreak ? 1 : 0
}

try {
  process.exitCode = main()
} catch (error) {
  console.error((error as Error).message)
  process.exitCode = 2
}
