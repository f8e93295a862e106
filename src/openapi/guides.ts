import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { projectPath } from '../project.js'
import type { Options } from './operation.js'

// The guides are written to be read where they lie, with the address and the date of the committed contract. Where the
// service has others, these take their place.
export const WRITTEN: Options = { baseUrl: 'https://petstore.example/v1', sunset: new Date('2030-12-05') }

const folder = projectPath('docs/guides')

/** Headings one level deeper, so that a guide is a section of a larger text. What is in a code block is no heading. */
const nested = (guide: string) =>
  guide
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part) => (part.startsWith('```') ? part : part.replace(/^#+ /gm, '#$&')))
    .join('')

const written = readdirSync(folder)
  .sort()
  .map((file) => nested(readFileSync(join(folder, file), 'utf8')).trim())
  .join('\n\n')

const words = ({ baseUrl, sunset }: Options) => [baseUrl, sunset.toISOString().slice(0, 10), sunset.toUTCString()]

/** All guides in their order, each a section with a heading of the second level, as this service has to tell them. */
export const guides = (actual: Options): string => {
  const told = words(actual)
  return words(WRITTEN).reduce((text, word, i) => text.replaceAll(word, () => told[i] ?? ''), written)
}
