import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const require = createRequire(import.meta.url)
const root = dirname(require.resolve('#package.json'))

export const { version } = require('#package.json') as { version: string }

/** Where a file of the project lies that the build does not compile: the same from src/ and from dist/. */
export const projectPath = (path: string) => join(root, path)
