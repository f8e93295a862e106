import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'

const root = dirname(createRequire(import.meta.url).resolve('#package.json'))

/** Where a file of the project lies that the build does not compile: the same from src/ and from dist/. */
export const projectPath = (path: string) => join(root, path)
