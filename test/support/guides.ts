import { readdirSync, readFileSync } from 'node:fs'

// The guides of the reference, by their files.

const folder = 'docs/guides'
export const guides = new Map(
  readdirSync(folder)
    .sort((a, b) => Number.parseInt(a, 10) - Number.parseInt(b, 10))
    .map((file) => [file, readFileSync(`${folder}/${file}`, 'utf8')]),
)
/** The first screen of the reference. */
export const introduction = readFileSync('docs/introduction.md', 'utf8')
export const guide = (name: string) => [...guides].find(([file]) => file.endsWith(`-${name}.md`))?.[1] ?? ''

/** The code blocks of a guide in a language. */
export const blocks = (text: string, language: string) =>
  [...text.matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, named, code = '']) =>
    named === language ? [code] : [],
  )
