/** Text that is markup already. All other values in a template are escaped. */
export class Markup {
  constructor(readonly text: string) {}
}

export type Content = Markup | string | number | false | undefined | Content[]

const entities: Record<string, string> = { '&': '&amp;', '<': '&lt;', '>': '&gt;', '"': '&quot;', "'": '&#39;' }

export const escapeText = (text: string) => text.replace(/[&<>"']/g, (character) => entities[character] ?? '')

function render(content: Content): string {
  if (content === undefined || content === false) return ''
  if (Array.isArray(content)) return content.map(render).join('')
  return content instanceof Markup ? content.text : escapeText(String(content))
}

/** A template whose values are escaped, unless they are markup themselves. */
export const html = (strings: TemplateStringsArray, ...values: Content[]) =>
  new Markup(String.raw({ raw: strings }, ...values.map(render)))
