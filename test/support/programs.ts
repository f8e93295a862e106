import { execFile, spawnSync } from 'node:child_process'

// Runs documented code the way readers would.

const interpreters = {
  Shell: { command: 'bash', args: ['-e'], needs: ['curl', '--fail-with-body', '--version'] },
  JavaScript: { command: process.execPath, args: ['--input-type=module', '-'], needs: [process.execPath, '--version'] },
  Python: { command: 'python3', args: ['-'], needs: ['python3', '-c', 'import requests'] },
}

export type Language = keyof typeof interpreters

/** Whether this machine has what programs of the language need. */
export function has(language: Language): boolean {
  const [command = '', ...args] = interpreters[language].needs
  return spawnSync(command, args).status === 0
}

/** Whether openapi-generator and the client that it writes in Python have what they need. */
export const canGeneratePython = () =>
  spawnSync('java', ['-version']).status === 0 &&
  spawnSync('python3', ['-c', 'import certifi, dateutil, six, urllib3']).status === 0

/** Joins programs into one, to start only one process. Each JavaScript program has its own scope. */
function joined(language: Language, programs: string[]): string {
  if (language !== 'JavaScript') return programs.join('\n')
  const imports = /^import .*$/gm
  const hoisted = new Set(programs.flatMap((program) => program.match(imports) ?? []))
  return [...hoisted, ...programs.map((program) => `{\n${program.replace(imports, '')}\n}`)].join('\n')
}

/**
 * Runs programs to the end, without the environment of this process.
 *
 * @returns their output
 * @throws Error with the output of the first one that fails
 */
export const runPrograms = (language: Language, programs: string[], env: Record<string, string>, cwd?: string) =>
  new Promise<string>((resolve, reject) => {
    const { command, args } = interpreters[language]
    const { PATH = '', HOME = '' } = process.env
    const child = execFile(command, args, { cwd, env: { PATH, HOME, ...env } }, (error, stdout, stderr) =>
      error ? reject(new Error(`${error.message}\n${stderr}\n${stdout}`)) : resolve(stdout),
    )
    child.stdin?.end(joined(language, programs))
  })
