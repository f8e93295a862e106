import { isDeepStrictEqual } from 'node:util'
import { findBreakingChanges, findDangerousChanges, type GraphQLSchema } from 'graphql'

/** One difference between two contracts, where it is, and whether a client of the old one may fail with the new one. */
export interface Change {
  breaks: boolean
  /** From the outside in: the operation, its part, the field. */
  place: readonly string[]
  what: string
}

type Node = Record<string, unknown>
type Direction = 'request' | 'response'
interface At {
  place: readonly string[]
  direction: Direction
}
/** What to say of the value of a key that changed. */
type Rule = (before: unknown, after: unknown, at: At, key: string) => Iterable<Change>
type Rules = Record<string, Rule>

const isNode = (value: unknown): value is Node => typeof value === 'object' && value !== null && !Array.isArray(value)

const inside = (at: At, name: string): At => (name ? { ...at, place: [...at.place, name] } : at)

const show = (value: unknown) => {
  const text = isNode(value) ? Object.keys(value).join(' and ') || 'nothing' : JSON.stringify(value)
  return text.length > 60 ? `${text.slice(0, 59)}…` : text
}

function say(key: string, before: unknown, after: unknown): string {
  if (before === undefined) return `${key} added: ${show(after)}`
  if (after === undefined) return `${key} removed: ${show(before)}`
  if (!Array.isArray(before) || !Array.isArray(after)) return `${key}: ${show(before)} → ${show(after)}`
  const without = (list: unknown[], other: unknown[]) =>
    list.filter((value) => !other.some((one) => isDeepStrictEqual(one, value))).map(show)
  const [gone, come] = [without(before, after), without(after, before)]
  return `${key}: ${[...gone.map((value) => `without ${value}`), ...come.map((value) => `with ${value}`)].join(', ') || 'in another order'}`
}

const told =
  (breaks: boolean): Rule =>
  (before, after, { place }, key) => [{ breaks, place, what: say(key, before, after) }]

// Keys that neither requests nor the reading of responses depend on.
const prose = /^(info|tags|title|summary|description|example|examples|externalDocs|xml)$/
const remark = /^(x-.*|deprecated|bearerFormat)$/
const reworded: Rule = (_before, _after, { place }, key) => [{ breaks: false, place, what: `${key} changed` }]

/** A key that no rule knows counts as breaking: somebody has to look at it. */
function* compare(rules: Rules, before: Node, after: Node, at: At): Generator<Change> {
  for (const key of new Set([...Object.keys(before), ...Object.keys(after)])) {
    if (isDeepStrictEqual(before[key], after[key])) continue
    const rule = rules[key] ?? (prose.test(key) ? reworded : told(!remark.test(key)))
    yield* rule(before[key], after[key], at, key)
  }
}

interface Members {
  /** How a name is shown. Nothing is shown for an empty one. */
  label?: (name: string) => string
  direction?: Direction
  added?: (member: Node) => boolean
  removed?: (name: string) => boolean
}

/** Named parts: an added one breaks clients only if it is required, a removed one breaks them by default. */
const members = (rules: () => Rules, options: Members = {}): Rule =>
  function* (before, after, outer) {
    const { label = String, direction = outer.direction, added = () => false, removed = () => true } = options
    const [old, now] = [before ?? {}, after ?? {}] as Record<string, Node>[]
    for (const name of new Set([...Object.keys(old ?? {}), ...Object.keys(now ?? {})])) {
      const at = inside({ ...outer, direction }, label(name))
      const [was, is] = [old?.[name], now?.[name]]
      if (was && is) yield* compare(rules(), was, is, at)
      else yield { breaks: is ? added(is) : removed(name), place: at.place, what: is ? 'added' : 'removed' }
    }
  }

// Schemas. A request that may hold less than before breaks, and so does a response that may hold more.

type Effect = 'same' | 'narrower' | 'wider' | 'other'

const order =
  (absent: number, tighter: 1 | -1) =>
  (before = absent, after = absent): Effect =>
    before === after ? 'same' : (after - before) * tighter > 0 ? 'narrower' : 'wider'

const flag =
  (whenTrue: Effect, whenFalse: Effect, absent = false) =>
  (before: unknown = absent, after: unknown = absent): Effect =>
    before === after ? 'same' : after === true ? whenTrue : after === false ? whenFalse : 'other'

/** The effect of what a list lost and gained. */
const list =
  (lost: Effect, gained: Effect) =>
  (before: unknown[], after: unknown[]): Effect => {
    const loses = before.some((value) => !after.includes(value))
    const gains = after.some((value) => !before.includes(value))
    return loses && gains ? 'other' : loses ? lost : gains ? gained : 'same'
  }

const constraint = (before: unknown, after: unknown): Effect =>
  before === undefined ? 'narrower' : after === undefined ? 'wider' : 'other'

const atMost = order(Number.POSITIVE_INFINITY, -1)
const atLeast = order(0, 1)
const allowed = list('narrower', 'wider')
const demanded = list('wider', 'narrower')

const effects: Record<string, (before: never, after: never) => Effect> = {
  maximum: atMost,
  maxLength: atMost,
  maxItems: atMost,
  maxProperties: atMost,
  minimum: order(Number.NEGATIVE_INFINITY, 1),
  minLength: atLeast,
  minItems: atLeast,
  minProperties: atLeast,
  exclusiveMaximum: flag('narrower', 'wider'),
  exclusiveMinimum: flag('narrower', 'wider'),
  uniqueItems: flag('narrower', 'wider'),
  nullable: flag('wider', 'narrower'),
  additionalProperties: flag('wider', 'narrower', true),
  required: (before: unknown[] = [], after: unknown[] = []) => demanded(before, after),
  enum: (before?: unknown[], after?: unknown[]) =>
    before && after ? allowed(before, after) : constraint(before, after),
  pattern: constraint,
  format: constraint,
  multipleOf: constraint,
  // Only who leaves a field out notices. One that is written down for the first time is no news.
  default: (before: unknown) => (before === undefined ? 'same' : 'narrower'),
}

const effectRule =
  (effect: (before: never, after: never) => Effect): Rule =>
  (before, after, { place, direction }, key) => {
    const is = effect(before as never, after as never)
    const breaks = is === 'other' || is === (direction === 'request' ? 'narrower' : 'wider')
    return [{ breaks, place, what: say(key, before, after) }]
  }

const schema: Rules = {
  ...Object.fromEntries(Object.entries(effects).map(([key, effect]) => [key, effectRule(effect)])),
  properties: members(() => schema),
  items: (before, after, at, key) =>
    isNode(before) && isNode(after)
      ? compare(schema, before, after, inside(at, '[]'))
      : told(true)(before, after, at, key),
}

const schemaRule: Rule = (before, after, at, key) =>
  isNode(before) && isNode(after) ? compare(schema, before, after, at) : told(true)(before, after, at, key)

// Operations

/** `required` of what is sent: demanding more of a request breaks, and so does promising less in a response. */
const required = effectRule(flag('narrower', 'wider'))
const media: Rules = { schema: schemaRule }
const content = members(() => media)
const sent: Rules = { required, schema: schemaRule, content }
const response: Rules = { headers: members(() => sent, { label: (name) => `header ${name}` }), content }

type Requirement = Record<string, string[]>

/** Who could call before still can when each way to be let in was enough for some way that there is now. */
const security: Rule = (before, after, { place }, key) => {
  const [old, now] = [before, after] as [Requirement[], Requirement[]]
  const enough = (credentials: Requirement, way: Requirement) =>
    Object.entries(way).every(
      ([scheme, scopes]) => scheme in credentials && scopes.every((scope) => credentials[scheme]?.includes(scope)),
    )
  const breaks = !old.every((credentials) => now.some((way) => enough(credentials, way)))
  return [{ breaks, place, what: say(key, old, now) }]
}

const operation: Rules = {
  // Clients that are generated have a function of this name.
  operationId: told(true),
  security,
  parameters: members(() => sent, { added: (parameter) => parameter.required === true }),
  requestBody: (before, after, at, key) => body({ 'request body': before }, { 'request body': after }, at, key),
  responses: members(() => response, {
    label: (status) => `response ${status}`,
    direction: 'response',
    // An error that no longer occurs breaks no client.
    removed: (status) => !/^[45]/.test(status),
  }),
}
const body = members(() => sent, { added: ({ required }) => required === true })

const methods = ['get', 'put', 'post', 'delete', 'options', 'head', 'patch', 'trace']

/** The same in one way: a default may stand in the description ("Default: 20, or 100 if …"), a quote in a pattern as its code. */
function uniform(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(uniform)
  if (!isNode(value)) return value
  const node: Node = Object.fromEntries(Object.entries(value).map(([key, inner]) => [key, uniform(inner)]))
  if (typeof node.pattern === 'string') node.pattern = node.pattern.replaceAll('\\x22', '"')
  const [, told] = /\bDefault: (\w+)/.exec(String(node.description)) ?? []
  const schema = isNode(node.schema) ? node.schema : node.type || node.allOf ? node : undefined
  if (told && schema) schema.default ??= /^(\d+|true|false)$/.test(told) ? JSON.parse(told) : told
  return node
}

const named = (parameters: Node[]) =>
  Object.fromEntries(
    parameters.map((parameter) => {
      const { name, in: where, style = where === 'query' || where === 'cookie' ? 'form' : 'simple' } = parameter
      const { explode = style === 'form', required = false, allowReserved = false } = parameter
      return [`${where} parameter ${name}`, { ...parameter, style, explode, required, allowReserved }]
    }),
  )

/** Every operation under its method and path, with what it has from its path and from the document, and all defaults. */
function operations(paths: unknown = {}, security: unknown = []) {
  return Object.fromEntries(
    Object.entries(paths as Record<string, Node>).flatMap(([path, { parameters = [], ...item }]) =>
      methods.flatMap((method) => {
        const found = item[method] as Node | undefined
        if (!found) return []
        const ways = (found.security ?? security) as Requirement[]
        const own = (found.parameters ?? []) as Node[]
        const whole = {
          ...found,
          security: ways.length > 0 ? ways : [{}],
          parameters: named([...(parameters as Node[]), ...own]),
        }
        return [[`${method.toUpperCase()} ${path}`, whole]]
      }),
    ),
  )
}

const document: Rules = {
  paths: members(() => operation),
  servers: members(() => ({}), { label: (url) => `server ${url}` }),
  // Clients that are generated have types of these names; what is in them is compared where it is used.
  schemas: members(() => ({}), { label: (name) => `schema ${name}` }),
  securitySchemes: members(() => ({}), { label: (name) => `security scheme ${name}` }),
}

/** The document with each local reference replaced by what it names, and `allOf` merged into the schema around it. */
function dereference(root: Node): Node {
  const resolve = (reference: string) =>
    reference
      .slice(2)
      .split('/')
      .reduce<unknown>(
        (node, key) => (node as Node)?.[decodeURIComponent(key).replace(/~1/g, '/').replace(/~0/g, '~')],
        root,
      )
  const expand = (node: unknown, within: string[]): unknown => {
    if (Array.isArray(node)) return node.map((one) => expand(one, within))
    if (!isNode(node)) return node
    const { $ref: reference } = node
    if (typeof reference === 'string') {
      // What is within itself stays a reference: it is compared where it begins.
      return within.includes(reference) ? node : expand(resolve(reference), [...within, reference])
    }
    const { allOf, ...rest } = Object.fromEntries(Object.entries(node).map(([key, one]) => [key, expand(one, within)]))
    return Array.isArray(allOf) ? merge([...allOf, rest]) : rest
  }
  return expand(root, []) as Node
}

function merge(schemas: Node[]): Node {
  const properties = Object.assign({}, ...schemas.map((part) => part.properties))
  const demands = schemas.flatMap((part) => (part.required ?? []) as string[])
  return {
    ...Object.assign({}, ...schemas),
    ...(Object.keys(properties).length > 0 && { properties }),
    ...(demands.length > 0 && { required: [...new Set(demands)] }),
  }
}

/** What the rules above compare: the parts that clients depend on, by name. */
function parts(root: Node): Node {
  const { components, servers = [], security: _, ...rest } = dereference(root)
  const { schemas = {}, securitySchemes = {} } = (components ?? {}) as Node
  return {
    ...rest,
    paths: operations(rest.paths, root.security),
    servers: Object.fromEntries((servers as Node[]).map(({ url, ...server }) => [url, server])),
    schemas: Object.fromEntries(Object.keys(schemas as Node).map((name) => [name, {}])),
    securitySchemes,
  }
}

/** What changed between two OpenAPI 3.0 documents for a client that was written, or generated, from the first. */
export const openApiChanges = (before: Node, after: Node): Change[] => [
  ...compare(document, parts(uniform(before) as Node), parts(uniform(after) as Node), {
    place: [],
    direction: 'request',
  }),
]

/**
 * The same for two GraphQL schemas, as graphql-js judges them. What it calls dangerous breaks no client that is written
 * with care; of what is only new it says nothing.
 */
export const graphqlChanges = (before: GraphQLSchema, after: GraphQLSchema): Change[] =>
  [findBreakingChanges(before, after), findDangerousChanges(before, after)].flatMap((changes, kind) =>
    changes.map(({ description }) => ({ breaks: kind === 0, place: ['GraphQL'], what: description })),
  )
