import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { slug } from '../../engines/reference/index.js'
import { projectPath } from '../../project.js'
import type { Options } from './document.js'

// The guides name the address and the date of the committed contract, so that they can be read in their folder. Where the
// service has others, these take their place.
export const PUBLISHED_DEFAULTS: Options = { baseUrl: 'https://petstore.example/v1', sunset: new Date('2030-12-05') }

/** Headings one level deeper, so that a guide is a section of a larger text. What is in a code block is no heading. */
const nested = (guide: string) =>
  guide
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part) => (part.startsWith('```') ? part : part.replace(/^#+ /gm, '#$&')))
    .join('')

const isoDate = (date: Date) => date.toISOString().slice(0, 10)

/** All guides in their order, each a section with a heading of the second level, with this service's address and date. */
export function readGuides({ baseUrl, sunset }: Options): string {
  const folder = projectPath('docs/guides')
  return readdirSync(folder)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
    .map((file) => nested(readFileSync(join(folder, file), 'utf8')).trim())
    .join('\n\n')
    .replaceAll(PUBLISHED_DEFAULTS.baseUrl, () => baseUrl)
    .replaceAll(isoDate(PUBLISHED_DEFAULTS.sunset), isoDate(sunset))
    .replaceAll(PUBLISHED_DEFAULTS.sunset.toUTCString(), sunset.toUTCString())
}

/** Links to the guides in the reference, as a list. */
export const guideLinks = (options: Options) =>
  Array.from(
    readGuides(options).matchAll(/^## (.+)$/gm),
    ([, title = '']) => `- [${title}](${options.baseUrl}/docs#${slug(title)})`,
  ).join('\n')
