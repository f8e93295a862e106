import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { atEnd } from './lifecycle.js'
import { runCommand } from './processes.js'
import type { Maxima } from './requests.js'
import { compiledFile } from './servers.js'
import type { Template } from './templates.js'

export interface Load {
  url: string
  connections: number
  /** Whole seconds. */
  seconds: number
  /** Equal seeds give equal requests (wrk). */
  seed: number
  templates: Template[]
  keys: string[]
  maxima: Maxima
}

export interface LoadResult {
  requests: number
  seconds: number
  bytes: number
  /** Milliseconds, as the client sees them. */
  p50: number
  p99: number
  /** Other statuses than 2xx, broken connections, timeouts. */
  failed: number
}

export interface Loader {
  name: string
  run(load: Load): Promise<LoadResult>
}

/** wrk where it is installed, else autocannon: one of them for a whole run, in a process of its own. */
export async function chooseLoader(): Promise<Loader> {
  const folder = mkdtempSync(join(tmpdir(), 'petstore-bench-'))
  atEnd(() => rmSync(folder, { recursive: true, force: true }))
  let loads = 0
  // Several may run at the same time.
  const nextFile = () => join(folder, `load${++loads}`)
  // wrk prints its version and fails.
  const version = await runCommand('wrk', ['-v']).catch((error) => /^wrk (?=\S+ \[)\S+/m.exec(error.message)?.[0])
  if (version)
    return {
      name: version,
      async run(load) {
        const file = nextFile()
        writeFileSync(file, `return ${toLua({ keys: load.keys, templates: load.templates, maxima: load.maxima })}`)
        const { url, connections, seconds, seed } = load
        const options = [
          '-t1',
          `-c${connections}`,
          `-d${seconds}s`,
          '--timeout',
          '10s',
          '--script',
          'test/lab/bench/wrk.lua',
        ]
        return parseResult(await runCommand('wrk', [...options, url, '--', file, String(seed)]))
      },
    }
  return {
    name: 'autocannon',
    async run(load) {
      const file = nextFile()
      writeFileSync(file, JSON.stringify(load))
      return parseResult(await runCommand(process.execPath, [compiledFile('autocannon'), file]))
    },
  }
}

function parseResult(output: string): LoadResult {
  const json = /^RESULT (.*)$/m.exec(output)?.[1]
  if (!json) throw new Error(`The loader printed no result:\n${output}`)
  return JSON.parse(json)
}

/** A Lua literal. JSON's escapes are Lua's too, but for \u, which nothing here needs. */
function toLua(value: unknown): string {
  if (Array.isArray(value)) return `{${value.map(toLua).join(',')}}`
  if (typeof value !== 'object' || value === null) return JSON.stringify(value)
  const fields = Object.entries(value).filter(([, field]) => field !== undefined)
  return `{${fields.map(([name, field]) => `[${JSON.stringify(name)}]=${toLua(field)}`).join(',')}}`
}
