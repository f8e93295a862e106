import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { attempt } from '../../../schema/kit/attempt.js'
import { StartupError } from '../../startup-error.js'

const maps = new Map<string, SourceMap | undefined>()

function mapOf(file: string): SourceMap | undefined {
  if (!maps.has(file))
    maps.set(
      file,
      attempt(() => new SourceMap(JSON.parse(readFileSync(`${file}.map`, 'utf8')))),
    )
  return maps.get(file)
}

/**
 * A stack trace with the lines of the sources instead of those of the build. Node can do the same
 * (`--enable-source-maps`), but for each error that is thrown, and a refused request throws two.
 */
export const readable = (stack: string) =>
  stack.replace(/file:\/\/([^\s():]+):(\d+):(\d+)/g, (place, path: string, line: string, column: string) => {
    const file = fileURLToPath(`file://${path}`)
    const origin = mapOf(file)?.findEntry(Number(line) - 1, Number(column) - 1)
    if (!origin || !('originalSource' in origin)) return place
    return `${resolve(dirname(file), origin.originalSource)}:${origin.originalLine + 1}:${origin.originalColumn + 1}`
  })

/** What to print of an error that ends a program: one line if an operator can act on it, or the stack trace. */
export const reasonOf = (error: unknown): string =>
  error instanceof StartupError
    ? error.message
    : error instanceof Error
      ? readable(error.stack ?? error.message)
      : `${error}`
