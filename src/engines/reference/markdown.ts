import hljs from 'highlight.js/lib/core'
import bash from 'highlight.js/lib/languages/bash'
import graphql from 'highlight.js/lib/languages/graphql'
import http from 'highlight.js/lib/languages/http'
import javascript from 'highlight.js/lib/languages/javascript'
import json from 'highlight.js/lib/languages/json'
import python from 'highlight.js/lib/languages/python'
import typescript from 'highlight.js/lib/languages/typescript'
import { Marked, type Token } from 'marked'
import { escapeText, html, Markup } from './html.js'

// Grammars bring their aliases: sh, js, py, ts.
for (const [name, grammar] of Object.entries({ bash, graphql, http, javascript, json, python, typescript }))
  hljs.registerLanguage(name, grammar)

/** Browsers would break words such as -H after the hyphen. One of more characters could be wider than a phone. */
const unbroken = (markup: string) =>
  markup.replace(/<[^>]*>|[\w-]*-[\w-]+/g, (text) =>
    /^<|.{31}/.test(text) ? text : `<span class="word">${text}</span>`,
  )

/** A code block, highlighted. */
export function codeBlock(code: string, language = ''): Markup {
  const known = hljs.getLanguage(language)
  const content = known ? hljs.highlight(code, { language }).value : escapeText(code)
  return html`<div class="code"><pre><code>${new Markup(unbroken(content))}</code></pre></div>`
}

/**
 * Markdown, in which markup is text, and only web addresses and fragments are links.
 *
 * @param addressOf where a piece of code such as `GET /pets` or `not_found` is described
 */
export function createMarkdown(addressOf: (code: string) => string | undefined) {
  const rowIds = new Set<string>()
  const marked = new Marked({
    renderer: {
      // The first row that explains an error code is where links to the code lead.
      tablerow({ text }) {
        const [, id = ''] = /<td><a href="#(error-\w+)">/.exec(text) ?? []
        if (!id || rowIds.has(id)) return `<tr>${text}</tr>`
        rowIds.add(id)
        return `<tr id="${id}" data-find="Error" data-title="${id.slice('error-'.length)}">${text}</tr>`
      },
      html: ({ text }) => escapeText(text),
      code: ({ text, lang }) => codeBlock(text, lang).text,
      codespan({ text }) {
        const address = addressOf(text)
        return (address ? html`<a href="${address}"><code>${text}</code></a>` : html`<code>${text}</code>`).text
      },
      link({ href, tokens }) {
        const text = new Markup(this.parser.parseInline(tokens))
        return /^(https?:|#)/.test(href) ? html`<a href="${href}">${text}</a>`.text : text.text
      },
      image: ({ text }) => escapeText(text),
    },
  })
  const render = (tokens: Token[]) => new Markup(marked.parser(tokens))

  return {
    /** Paragraphs. */
    block: (text = '') => render(marked.lexer(text)),
    /** Tokens to be split into sections. */
    parse: (text: string): Token[] => marked.lexer(text),
    render,
  }
}

export type Markdown = ReturnType<typeof createMarkdown>
