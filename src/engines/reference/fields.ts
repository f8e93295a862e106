import type { Header, OpenApiDocument, Schema } from './document.js'
import { type Content, html, type Markup } from './html.js'
import type { Markdown } from './markdown.js'

/** What every part of the page needs. */
export interface View {
  document: OpenApiDocument
  markdown: Markdown
}

/** What a `$ref` refers to, or the value itself. */
export function resolve<T extends object>({ document }: View, value: T | { $ref: string }): T {
  if (!('$ref' in value) || !value.$ref) return value as T
  const keys = value.$ref.split('/').slice(1)
  return keys.reduce<unknown>((found, key) => (found as Record<string, unknown>)[key], document) as T
}

/** The schema whose name a reference or a field of its own description has. */
const named = ({ $ref, allOf }: Schema) => ($ref ?? allOf?.[0]?.$ref)?.split('/').at(-1)

/** The schema with what it refers to, and with the fields of everything that it is made of. */
export function flatten(view: View, schema: Schema): Schema {
  const { $ref, allOf, ...own } = schema
  const parts = [...($ref ? [{ $ref }] : []), ...(allOf ?? [])].map((part) =>
    flatten(view, resolve(view, part as Schema)),
  )
  const properties = Object.assign({}, ...[...parts, own].map((part) => part.properties))
  const required = [...parts, own].flatMap((part) => part.required ?? [])
  return {
    ...Object.assign({}, ...parts),
    ...own,
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(required.length > 0 && { required }),
  }
}

export const pretty = (value: unknown) => JSON.stringify(value, null, 2)

/** The example of a schema, put together from those of its fields. */
export function exampleOf(view: View, schema: Schema): unknown {
  const { example, type, items, properties } = flatten(view, schema)
  if (example !== undefined) return example
  if (type === 'array' && items) return [exampleOf(view, items)]
  return Object.fromEntries(Object.entries(properties ?? {}).map(([name, field]) => [name, exampleOf(view, field)]))
}

export function typeOf(schema: Schema): Content {
  const name = named(schema)
  if (name) return html`<a href="#schema-${name}">${name}</a>`
  if (schema.items) return ['array of ', typeOf(schema.items)]
  return schema.format ? `${schema.type} (${schema.format})` : schema.type
}

const { format } = new Intl.NumberFormat('en-US')
const figure = (value: number) => (value === Number.MAX_SAFE_INTEGER ? '2⁵³ − 1' : format(value))

function range(unit: string, min?: number, max?: number): string | false {
  if (min === undefined && max === undefined) return false
  const text = max === undefined ? 'at least ' : min === undefined ? 'at most ' : ''
  const bounds = [min, max].filter((bound) => bound !== undefined)
  return `${text}${(min === max ? [min ?? 0] : bounds).map(figure).join(' to ')}${unit}`
}

const patterns: Record<string, string> = { '\\S': 'not blank', '^[^\\u0000]*$': 'without U+0000' }

const values = (list: unknown[]) => list.map((value, index) => [index > 0 && ', ', html`<code>${String(value)}</code>`])

/** What a value must be, in words. */
function bounds(view: View, schema: Schema): Content[] {
  const flat = flatten(view, schema)
  const each = flat.items && flatten(view, flat.items)
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, nullable } = flat
  return [
    flat.enum && ['one of ', values(flat.enum)],
    each?.enum && ['each one of ', values(each.enum)],
    range('', minimum, maximum),
    range(' characters', minLength, maxLength),
    range(' items', minItems, maxItems),
    pattern && (patterns[pattern] ?? html`matches <code>${pattern}</code>`),
    nullable && html`may be <code>null</code>`,
    flat.default !== undefined && html`default: <code>${JSON.stringify(flat.default)}</code>`,
  ].filter(Boolean)
}

interface Field {
  name: string
  schema: Schema
  description?: string
  required?: boolean
  /** Where a link to it leads, and how search calls it. */
  id?: string
  title?: string
  kind?: string
}

function field(view: View, { name, schema, description, required, id, title, kind = 'Field' }: Field): Markup {
  const limits = bounds(view, schema)
  const found = id && html` id="${id}" data-find="${kind}" data-title="${title ?? name}"`
  return html`<li${found}>
<p><code class="name">${name}</code> <span class="type">${typeOf(schema)}</span>${required && html` <span class="required">required</span>`}</p>
${view.markdown.block(description)}${limits.length > 0 && html`<p class="bounds">${limits.map((limit, index) => [index > 0 && ' · ', limit])}</p>`}
</li>
`
}

export const fields = (view: View, list: Field[]): Content =>
  list.length > 0 && html`<ul class="fields">${list.map((one) => field(view, one))}</ul>`

/** @param owner the name of the schema, where this is the place that links to its fields lead to */
export function schemaFields(view: View, schema: Schema, owner?: string): Content {
  const flat = flatten(view, schema)
  if (flat.items) return schemaFields(view, flat.items, owner)
  return fields(
    view,
    Object.entries(flat.properties ?? {}).map(([name, property]) => ({
      name,
      schema: property,
      description: property.description,
      required: flat.required?.includes(name),
      ...(owner && { id: `schema-${owner}.${name}`, title: `${owner}.${name}` }),
    })),
  )
}

export const headerFields = (view: View, headers: Record<string, Header | { $ref: string }>, ids = false): Content =>
  fields(
    view,
    Object.entries(headers).map(([name, header]) => {
      const { schema, description } = resolve<Header>(view, header)
      // Their bounds matter only to authors of parsers, who find them in the document.
      const type = { type: schema.type, format: schema.format }
      return { name, schema: type, description, ...(ids && { id: `header-${name}`, kind: 'Header' }) }
    }),
  )
