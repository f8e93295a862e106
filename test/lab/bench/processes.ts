import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { freePort } from '../../support/ports.js'
import { atEnd, Refusal } from './lifecycle.js'

const START_TIMEOUT_MS = 120_000
const STOP_TIMEOUT_MS = 15_000
/** A line of pino at level warn or above. */
const WARNING = /^\{"level":(?:[4-9]|\d\d)\d[^\n]*/gm

/** Starts a process that does not outlive the benchmark. Only root can give it to another owner. */
export function startProcess(
  command: string,
  args: string[],
  env: Record<string, string> = {},
  owner: { uid?: number; gid?: number } = {},
): ChildProcess {
  // Nothing of the caller's own settings: LOG_LEVEL and the like would change what is measured.
  const { PATH = '', HOME = '' } = process.env
  const child = spawn(command, args, { env: { PATH, HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'], ...owner })
  atEnd(() => child.kill('SIGKILL'))
  return child
}

const hasEnded = (child: ChildProcess) => child.exitCode !== null || child.signalCode !== null

/** Runs a command to its end and returns its standard output. */
export async function runCommand(command: string, args: string[], owner = {}): Promise<string> {
  const child = startProcess(command, args, {}, owner)
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name]?.setEncoding('utf8').on('data', (text) => {
      output[name] += text
    })
  const [code] = await once(child, 'close')
  if (code === 0) return output.stdout
  throw new Error(`${command} ${args.join(' ')} failed with ${code}:\n${output.stderr}${output.stdout}`)
}

export type RunningServer = Awaited<ReturnType<typeof startServer>>

/** Starts a server as production does, at its default log level, and waits until it answers. */
export async function startServer(args: string[], env: Record<string, string>, node = process.execPath) {
  const port = await freePort()
  const url = `http://127.0.0.1:${port}`
  const child = startProcess(node, args, {
    NODE_ENV: 'production',
    HOST: '127.0.0.1',
    PORT: String(port),
    ...env,
  })
  // Servers write a line for each request. To read them must cost next to nothing: the loader needs the processor.
  let log = ''
  const warnings: string[] = []
  for (const stream of [child.stdout, child.stderr]) {
    let rest = ''
    stream?.setEncoding('utf8').on('data', (text: string) => {
      log = (log + text).slice(-5_000)
      const end = text.lastIndexOf('\n') + 1
      warnings.push(...((rest + text.slice(0, end)).match(WARNING) ?? []))
      rest = end === 0 ? rest + text : text.slice(end)
    })
  }
  for (const began = performance.now(); ; await sleep(50)) {
    if (hasEnded(child)) throw new Refusal(`${args.join(' ')} ended at its start:\n${log}`)
    if (performance.now() - began > START_TIMEOUT_MS) throw new Refusal(`${args.join(' ')} does not answer`)
    if (await fetch(url, { redirect: 'manual' }).catch(() => undefined)) break
  }
  const pid = child.pid as number
  return {
    url,
    child,
    /** Log lines of level warn and above. */
    warnings,
    /** Of all its processes. */
    cpuSeconds: () => sum(withChildren(pid).map(cpuSeconds)),
    memoryMB: () => sum(withChildren(pid).map((each) => memoryMB(each, 'VmRSS'))),
    peakMemoryMB: () => memoryMB(pid, 'VmHWM'),
    async stop() {
      if (hasEnded(child)) throw new Error(`${args.join(' ')} ended during the run:\n${log}`)
      const exit = once(child, 'exit')
      child.kill('SIGTERM')
      const killer = setTimeout(() => child.kill('SIGKILL'), STOP_TIMEOUT_MS)
      await exit
      clearTimeout(killer)
    },
  }
}

const sum = (values: number[]) => values.reduce((sum, value) => sum + value, 0)

const withChildren = (pid: number) => [
  pid,
  ...readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').filter(Boolean).map(Number),
]

/** User and system time of all threads so far. The kernel counts in hundredths of a second. */
function cpuSeconds(pid: number) {
  // The name of the command, in parentheses, may itself hold spaces.
  const fields = readFileSync(`/proc/${pid}/stat`, 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[11]) + Number(fields[12])) / 100
}

function memoryMB(pid: number, field: 'VmRSS' | 'VmHWM') {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`${field}:\\s+(\\d+)`).exec(status)?.[1]) / 1024
}
