import type { Token } from 'marked'
import type { View } from './fields.js'
import { type Content, html } from './html.js'
import { row } from './operation.js'
import { slug } from './slug.js'

export interface Guide {
  title: string
  id: string
  words: string
  content: Content
}

interface Group {
  name: string
  id: string
  sections: Guide[]
}

const COMMENT = /<!-- (group|search): ([^>]+?) -->/g

const commentsOf = (token: Token) => (token.type === 'html' ? [...token.raw.matchAll(COMMENT)] : [])

const isComment = (token: Token) => token.type === 'html' && token.raw.replaceAll(COMMENT, '').trim() === ''

/** What the comments of a part say: the group that begins with a guide, or words by which search finds the part. */
const said = (kind: 'group' | 'search', tokens: Token[]) =>
  tokens
    .flatMap(commentsOf)
    .flatMap(([, found, text = '']) => (found === kind ? [text] : []))
    .join(', ')

/** What comes before the first of some tokens, then from each of them to the next. */
function splitAt(
  tokens: Token[],
  begins: (token: Token, next?: Token) => boolean,
): [before: Token[], ...parts: Token[][]] {
  const starts = tokens.flatMap((token, index) => (begins(token, tokens[index + 1]) ? [index] : []))
  return [tokens.slice(0, starts[0]), ...starts.map((start, index) => tokens.slice(start, starts[index + 1]))]
}

const isHeading = (token: Token) => token.type === 'heading'
const isCode = (token?: Token) => token?.type === 'code'
const titleOf = ([heading]: Token[]) => String(heading && 'text' in heading && heading.text)

/**
 * Splits a text at its headings of the second level. Each is a guide, in the group that was named last.
 *
 * @returns also what comes before the first of them: the introduction, and apart from it its code
 */
export function readGuides(text: string, { markdown }: View) {
  const tokens = markdown.parse(text).filter(({ type }) => type !== 'space')
  const render = (tokens: Token[]) => tokens.length > 0 && markdown.render(tokens)
  /** A paragraph stands beside the code that follows it. */
  const rows = (part: Token[]) => {
    const tokens = part.filter((token) => !isComment(token))
    const [before, ...others] = splitAt(tokens, (token, next) => !isCode(token) && isCode(next))
    const code = (tokens: Token[]) => tokens.filter(isCode)
    const text = (tokens: Token[]) => tokens.filter((token) => !isCode(token))
    return [
      before.length > 0 && row(render(text(before)), render(code(before))),
      others.map(([first, ...rest]) => row(render(first ? [first] : []), render(code(rest)), render(text(rest)))),
    ]
  }
  const [before, ...guides] = splitAt(tokens, (token) => token.type === 'heading' && token.depth === 2)
  const groups: Group[] = []
  let group: Group | undefined
  for (const guide of guides) {
    const title = titleOf(guide)
    const id = slug(title)
    const [first, ...parts] = splitAt(guide.slice(1), isHeading)
    const content = parts.map((part) => {
      const title = titleOf(part)
      const partId = `${id}-${slug(title)}`
      return html`<h5 id="${partId}" data-find="Guide" data-title="${title}" data-words="${said('search', part)}" data-hint="${titleOf(guide)}"><a href="#${partId}">${title}</a></h5>
${rows(part.slice(1))}`
    })
    const name = said('group', guide)
    if (name || !group) {
      group = groups.find((known) => known.name === name) ?? { name, id: `guides-${slug(name)}`, sections: [] }
      if (!groups.includes(group)) groups.push(group)
    }
    group.sections.push({ title, id, words: said('search', first), content: [rows(first), content] })
  }
  return {
    introduction: render(before.filter((token) => !isCode(token))),
    samples: render(before.filter(isCode)),
    groups,
  }
}
