import { execFile } from 'node:child_process'
import { mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname } from 'node:path'
import { promisify } from 'node:util'
import { guide } from './guides.js'

// The files of guides to clients, in a project of their own, with the clients that are installed in test/lab/generators.

const run = promisify(execFile)
const documented = 'https://petstore.example/v1'

const compilerOptions = {
  target: 'es2023',
  module: 'esnext',
  moduleResolution: 'bundler',
  lib: ['es2023', 'dom', 'dom.iterable'],
  strict: true,
  noUncheckedIndexedAccess: true,
  erasableSyntaxOnly: true,
  noEmit: true,
  skipLibCheck: true,
  allowJs: true,
  jsx: 'react-jsx',
  types: ['node'],
}

/** The files that a text shows, by their names. A file has its name in a comment, which JSON does not allow. */
export const filesIn = (text: string) =>
  new Map(
    Array.from(
      text.matchAll(/^```(?:json|[jt]sx?)\n(?:\/\/ (\S+)\n)?([\s\S]*?)^```$/gm),
      ([, name = 'relay.config.json', code = '']) => [name, code],
    ),
  )
/** The files of whole guides. */
export const filesOf = (...guides: string[]) => filesIn(guides.map(guide).join('\n'))

export class GuideProject {
  constructor(
    readonly folder: string,
    /** Takes the place of the one in the guides. */
    readonly baseUrl: string,
  ) {}

  async create(files: Iterable<[name: string, code: string]>) {
    await rm(this.folder, { recursive: true, force: true })
    for (const [name, code] of files) await this.write(name, code)
    await this.write('tsconfig.json', JSON.stringify({ compilerOptions, include: ['src/*', 'vite.config.ts'] }))
  }

  async write(name: string, code: string) {
    await mkdir(dirname(`${this.folder}/${name}`), { recursive: true })
    await writeFile(`${this.folder}/${name}`, code.replaceAll(documented, this.baseUrl))
  }

  /** Runs a command in a shell, as a guide prints it. */
  shell(command: string) {
    const env = { ...process.env, DO_NOT_TRACK: '1' }
    return run('bash', ['-ec', command.replaceAll(documented, this.baseUrl)], { cwd: this.folder, env })
  }

  /** What the compiler says. */
  async compile(): Promise<string> {
    const compiler = 'test/lab/check/node_modules/typescript/bin/tsc'
    const { stdout } = await run(process.execPath, [compiler, '-p', `${this.folder}/tsconfig.json`]).catch(
      (error: { stdout: string }) => error,
    )
    return stdout
  }

  /** What a file prints. */
  async execute(file: string, key: string): Promise<string> {
    const { PATH, HOME } = process.env
    const env = { PATH, HOME, PETSTORE_KEY: key, TSX_TSCONFIG_PATH: `${this.folder}/tsconfig.json` }
    const { stdout } = await run(process.execPath, ['--import', 'tsx', `${this.folder}/${file}`], { env })
    return stdout.trim()
  }
}
