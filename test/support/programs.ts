import { execFile, spawnSync } from 'node:child_process'

// Code that readers are shown, run as they would run it.

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

/** Several programs as one, which saves starting each: they run one after the other, each JavaScript in a scope of its own. */
function joined(language: Language, programs: string[]): string {
  if (language !== 'JavaScript') return programs.join('\n')
  const imports = /^import .*$/gm
  const hoisted = new Set(programs.flatMap((program) => program.match(imports) ?? []))
  return [...hoisted, ...programs.map((program) => `{\n${program.replace(imports, '')}\n}`)].join('\n')
}

/**
 * Runs programs to the end, without anything that this process has in its environment.
 *
 * @returns what they print
 * @throws Error with what the first that fails says
 */
export const runPrograms = (language: Language, programs: string[], env: Record<string, string>) =>
  new Promise<string>((resolve, reject) => {
    const { command, args } = interpreters[language]
    const { PATH = '', HOME = '' } = process.env
    const child = execFile(command, args, { env: { PATH, HOME, ...env } }, (error, stdout, stderr) =>
      error ? reject(new Error(`${error.message}\n${stderr}\n${stdout}`)) : resolve(stdout),
    )
    child.stdin?.end(joined(language, programs))
  })
