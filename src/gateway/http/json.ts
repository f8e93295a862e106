import { randomBytes } from 'node:crypto'

// JSON whose integers past 2^53 are exact: rounded, an id would name another row. JSON.parse reads it, for which these integers
// become texts. A parser that is not V8's takes several times as long (docs/decisions/0024-exact-integers.md).

/** Begins the text that stands for an integer. No client can know it. */
const MARK = `${randomBytes(15).toString('base64url')}:`

/** Whole numbers of 16 to 19 digits: an id has no more. */
const LONG = /(?<![\d.eE+-])-?[1-9]\d{15,18}(?![\d.eE])/g
const LEAST = 16

const mark = (digits: string) => (Number.isSafeInteger(Number(digits)) ? digits : `"${MARK}${digits}"`)

/** Marks the integers that are not in a text, in one pass. */
function markIntegers(json: string): string {
  let marked = ''
  let copied = 0
  for (let at = 0; ; ) {
    const quote = json.indexOf('"', at)
    const end = quote < 0 ? json.length : quote
    if (end - at >= LEAST) {
      marked += json.slice(copied, at) + json.slice(at, end).replace(LONG, mark)
      copied = end
    }
    if (quote < 0) return marked + json.slice(copied)
    at = endOfText(json, quote)
  }
}

/** Where a text ends that begins with a quote: after a quote with an even number of backslashes before it. */
function endOfText(json: string, begin: number): number {
  for (let quote = json.indexOf('"', begin + 1); quote >= 0; quote = json.indexOf('"', quote + 1)) {
    let before = quote - 1
    while (json[before] === '\\') before--
    if ((quote - before) % 2 === 1) return quote + 1
  }
  return json.length
}

function withIntegers(value: unknown): unknown {
  if (typeof value === 'string') return value.startsWith(MARK) ? BigInt(value.slice(MARK.length)) : value
  if (typeof value !== 'object' || value === null) return value
  const values = value as Record<string, unknown>
  for (const name of Object.keys(values)) {
    const given = values[name]
    const exact = withIntegers(given)
    if (exact !== given) values[name] = exact
  }
  return value
}

/**
 * Parses JSON. Integers of at most 19 digits that a number cannot hold are bigints.
 *
 * @throws SyntaxError as JSON.parse; RangeError (nested too deeply)
 */
export function parseJson(json: string): unknown {
  // First as it was sent: it is refused with the position of its mistake, and once. V8 takes long to refuse what nests deeply.
  const rounded = JSON.parse(json)
  const marked = /\d{16}/.test(json) ? markIntegers(json) : json
  return marked === json ? rounded : withIntegers(JSON.parse(marked))
}
