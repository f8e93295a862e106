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

/** A text of the docs with this service's address and date. */
const published = (text: string, { baseUrl, sunset }: Options) =>
  text
    .trim()
    .replaceAll(PUBLISHED_DEFAULTS.baseUrl, () => baseUrl)
    .replaceAll(isoDate(PUBLISHED_DEFAULTS.sunset), isoDate(sunset))
    .replaceAll(PUBLISHED_DEFAULTS.sunset.toUTCString(), sunset.toUTCString())

// What the operator does comes after it.
const OPERATOR = /(the operator of this service)\.[\s\S]*$/

/** What the service is, and how to get a first answer: paragraphs, a request and its response. */
export function readIntroduction(options: Options): string {
  const { contactUrl } = options
  const text = published(readFileSync(projectPath('docs/introduction.md'), 'utf8'), options)
  return contactUrl ? text.replace(OPERATOR, (_, operator) => `[${operator}](<${contactUrl}>).`) : text
}

/** Its paragraphs for clients. */
export const readSummary = (options: Options) =>
  readIntroduction(options)
    .replace(/```[\s\S]*?```\s*/g, '')
    .replace(OPERATOR, '$1.')
    .trim()

/** All guides in their order, each a section with a heading of the second level, with links to where the reference has the others. */
export function readGuides(options: Options): string {
  const folder = projectPath('docs/guides')
  const files = readdirSync(folder).sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
  const texts = new Map(files.map((file) => [file, readFileSync(join(folder, file), 'utf8')]))
  const idOf = (file: string) => slug(/^# (.+)/.exec(texts.get(file) ?? '')?.[1] ?? '')
  return [...texts.values()]
    .map((text) => published(nested(text), options))
    .join('\n\n')
    .replace(/\]\((\d+-[\w-]+\.md)(?:#([\w-]+))?\)/g, (_, file, part) => `](#${idOf(file)}${part ? `-${part}` : ''})`)
}

/** Links to the guides in the reference, as a list. */
export const guideLinks = (options: Options) =>
  Array.from(
    readGuides(options).matchAll(/^## (.+)$/gm),
    ([, title = '']) => `- [${title}](${options.baseUrl}/docs#${slug(title)})`,
  ).join('\n')
