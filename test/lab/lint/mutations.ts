import { parseSync } from 'oxc-parser'

// Small changes of a program, each of which should make a test fail.

export interface Mutation {
  start: number
  end: number
  /** What replaces the text between start and end. */
  text: string
}

// biome-ignore lint/suspicious/noExplicitAny: a node of any type
type Node = { type: string; start: number; end: number } & Record<string, any>

const SWAPPED: Record<string, string> = {
  '<': '<=',
  '<=': '<',
  '>': '>=',
  '>=': '>',
  '===': '!==',
  '!==': '===',
  '+': '-',
  '-': '+',
  '*': '/',
  '/': '*',
  '+=': '-=',
  '-=': '+=',
  '++': '--',
  '--': '++',
}

const isText = ({ type, value }: Node) => type === 'TemplateLiteral' || typeof value === 'string'

/** A bound one higher, or a time ten times as long: one more millisecond shows nowhere. */
const otherNumber = (value: number, name: string) => String(/_MS|_SECONDS/.test(name) ? value * 10 : value + 1)

/** In SQL and Lua. */
const TEXT_SWAPS: [RegExp, string][] = [
  [/(?<=\s)<=(?=\s)/g, '<'],
  [/(?<=\s)<(?=\s)/g, '<='],
  [/(?<=\s)>=(?=\s)/g, '>'],
  [/(?<=\s)>(?=\s)/g, '>='],
  [/(?<=\s)~=(?=\s)/g, '=='],
  [/(?<=\s)==(?=\s)/g, '~='],
  [/(?<=\s)\+(?=\s)/g, '-'],
  [/(?<=\s)-(?=\s)/g, '+'],
  [/(?<=\s)AND(?=\s)/g, 'OR'],
  [/(?<=\s)and(?=\s)/g, 'or'],
  [/(?<=\s)or(?=\s)/g, 'and'],
  [/math\.max/g, 'math.min'],
  [/(?<=\bif ).+(?= then\b)/g, 'false'],
  [/(?<=\bif ).+(?= then\b)/g, 'true'],
  [/ FOR (?:NO KEY )?UPDATE(?! SKIP)/g, ''],
  [/\bpg_try_advisory_xact_lock\(hashtextextended\(\$1, \$2\)\)/g, 'pg_try_advisory_xact_lock($2)'],
]

function inText(source: string, offset = 0): Mutation[] {
  return TEXT_SWAPS.flatMap(([pattern, text]) =>
    [...source.matchAll(pattern)].map(({ index, 0: { length } }) => ({
      start: offset + index,
      end: offset + index + length,
      text,
    })),
  )
}

function inNode(node: Node, source: string, name: string): Mutation[] {
  const of = ({ start, end }: Node) => source.slice(start, end)
  const replace = ({ start, end }: Node, text: string) => ({ start, end, text })
  /** Replaces the operator between two nodes, or before or after one. */
  function swap(start: number, end: number, operator: string) {
    const at = source.indexOf(operator, start)
    const text = SWAPPED[operator]
    return text && at >= 0 && at < end ? [{ start: at, end: at + operator.length, text }] : []
  }
  const { type, operator, left, right, expression, test } = node
  switch (type) {
    case 'IfStatement':
    case 'ConditionalExpression':
      // A comparison is swapped anyway.
      return [...(/^[!=]==$/.test(test.operator) ? [] : [replace(test, `!(${of(test)})`)]), replace(test, 'false')]
    case 'LogicalExpression':
      return [replace(node, of(left)), replace(node, of(right))]
    case 'BinaryExpression':
      return operator === '+' && (isText(left) || isText(right)) ? [] : swap(left.end, right.start, operator)
    case 'AssignmentExpression':
      return swap(left.end, right.start, operator)
    case 'UpdateExpression':
      return swap(node.start, node.end, operator)
    case 'ThrowStatement':
      return [replace(node, ';')]
    case 'ExpressionStatement':
      // Debugging is promised to nobody.
      if (/\.debug\(/.test(of(expression)) || node.directive) return []
      return [
        replace(node, ';'),
        ...(expression.type === 'AwaitExpression' ? [replace(expression, `void ${of(expression.argument)}`)] : []),
      ]
    case 'Literal':
      if (typeof node.value === 'number') return [replace(node, otherNumber(node.value, name))]
      return typeof node.value === 'boolean' ? [replace(node, String(!node.value))] : []
    case 'MemberExpression':
      if (of(node) === 'Math.min') return [replace(node, 'Math.max')]
      return of(node) === 'Math.max' ? [replace(node, 'Math.min')] : []
    case 'TemplateElement':
      return /\b(?:SELECT|UPDATE|INSERT|DELETE|WHERE|JOIN)\b/.test(of(node)) ? inText(of(node), node.start) : []
    default:
      return []
  }
}

/** Types are not part of what runs, but what they annotate is. */
const isType = ({ type }: Node) => type.startsWith('TS') && !/^TS(?:As|Satisfies|NonNull)Expression$/.test(type)

/** All mutations of a TypeScript or Lua file. */
export function mutationsOf(file: string, source: string): Mutation[] {
  if (file.endsWith('.lua')) return inText(source).filter(({ start }) => !/--.*$/.test(source.slice(0, start)))
  const found: Mutation[] = []
  function visit(node: Node, name: string) {
    if (isType(node) || node.type === 'ImportDeclaration') return
    found.push(...inNode(node, source, name))
    const inner = node.type === 'VariableDeclarator' ? String(node.id.name) : name
    for (const value of Object.values(node))
      for (const child of [value].flat()) if (typeof child?.type === 'string') visit(child, inner)
  }
  visit(parseSync(file, source).program as unknown as Node, '')
  return found
}

export const mutated = (source: string, { start, end, text }: Mutation) =>
  source.slice(0, start) + text + source.slice(end)
