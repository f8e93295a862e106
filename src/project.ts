import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const root = dirname(require.resolve('#package.json'))

declare const COMMIT: string | undefined

/** The commit that was built; empty if it is unknown: when run from the sources, or built without Git. */
export const commit = typeof COMMIT === 'string' ? COMMIT : ''

export const { version } = require('#package.json') as { version: string }

/** Where a file of the project lies that the build does not compile: the same from src/ and from dist/. */
export const projectPath = (path: string) => join(root, path)
