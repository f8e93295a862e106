import { randomInt } from 'node:crypto'
import fc from 'fast-check'
import { test } from 'vitest'
import { catalogue } from '../../../schema/kit/errors.js'
import type { Answer, Gateway } from '../../support/gateway.js'

const { FUZZ_CASES = '20000', FUZZ_SEED = String(randomInt(2 ** 31)), FUZZ_PATH: path } = process.env
const seed = Number(FUZZ_SEED)

/** A request that a shell can repeat. */
export interface FuzzRequest {
  method: string
  target: string
  headers: Record<string, string>
  body?: string | Uint8Array
}

/**
 * Runs its share of FUZZ_CASES random cases. The seed decides them all, so a failure can be repeated; it is reported with
 * the smallest case that fails.
 */
export function fuzz<Case>(
  title: string,
  share: number,
  cases: fc.Arbitrary<Case>,
  { run, show }: { run: (value: Case) => Promise<void>; show: (value: Case) => string },
) {
  const numRuns = Math.ceil(Number(FUZZ_CASES) * share)
  test(`${title} (${numRuns} cases, FUZZ_SEED=${seed})`, async () => {
    const result = await fc.check(
      fc.asyncProperty(cases, (value) => run(value)),
      { seed, numRuns, path },
    )
    if (!result.failed) return
    const [smallest] = result.counterexample as [Case]
    const repeat = `FUZZ_SEED=${seed} FUZZ_PATH=${result.counterexamplePath} npm run fuzz -- -t '${title}'`
    const cause = result.errorInstance instanceof Error ? result.errorInstance.message : String(result.errorInstance)
    throw new Error(`${cause}\n\nThe smallest request that fails:\n${show(smallest)}\n\nRepeat it: ${repeat}`)
  })
}

/** Text or bytes in single quotes, for the format of printf. */
const forPrintf = (text: string | Uint8Array) =>
  [...Buffer.from(text)]
    .map((byte) => {
      const character = String.fromCharCode(byte)
      if (character === '%') return '%%'
      return byte < 32 || byte > 126 || character === "'" || character === '\\'
        ? `\\${byte.toString(8).padStart(3, '0')}`
        : character
    })
    .join('')

const quoted = (text: string) =>
  /^[\x20-\x7e]*$/.test(text) && !text.includes("'") ? `'${text}'` : `"$(printf '${forPrintf(text)}')"`

/** The key of the run is gone with it. */
const withoutKey = (header: string) => header.replace(/^'(.*)petstore_[0-9a-f]{48}'$/, '"$1$KEY"')

/** The request as a command for bash. */
export const curl = ({ method, target, headers, body }: FuzzRequest) =>
  [
    `curl -i --path-as-is ${method === 'HEAD' ? '--head' : `-X ${method}`} ${quoted(`http://localhost:3000${target}`)}`,
    ...Object.entries(headers).map(([name, value]) => `-H ${withoutKey(quoted(`${name}: ${value}`))}`),
    ...(body === undefined ? [] : [`--data-binary @<(printf '${forPrintf(body)}')`]),
  ].join(' \\\n  ')

/** Bytes on a connection as a command for bash. */
export const onSocket = (bytes: Uint8Array) => `printf '${forPrintf(bytes)}' | curl -s telnet://localhost:3000`

/** What a message to a client must never show, but in quotes, where it repeats what the client has sent. */
const internals =
  /prisma|postgres|redis|node_modules|\bat \S+ \(|\.[cm]?[jt]s:\d|\b(SELECT|INSERT|UPDATE|DELETE|FROM) "|\bP[12]0\d\d\b|ECONN|TypeError|ReferenceError|RangeError|Cannot read prop|is not a function|\[object |undefined/i

/** No defect: neither in what the client sees nor in the log. Empties the log. */
export function assertHealthy(gateway: Pick<Gateway, 'logged'>, statuses: number[], messages: string[]) {
  const errors = gateway.logged.splice(0).filter((line) => JSON.parse(line).level >= 50)
  if (errors[0]) throw new Error(`The gateway logged an error: ${errors[0].slice(0, 2_000)}`)
  for (const status of statuses) if (status >= 500 && status !== 501) throw new Error(`The gateway returned ${status}`)
  for (const message of messages)
    if (internals.test(message.replace(/"(?:[^"\\]|\\.)*"/g, '""')))
      throw new Error(`A message shows internals: ${message}`)
}

/** The messages of a refusal on either surface. Each has a code of the catalogue. */
export function messagesOf({ body }: Pick<Answer, 'body'>): string[] {
  const errors = body?.errors?.map((error: { message: string; extensions?: object }) => ({
    ...error,
    ...error.extensions,
  }))
  return (errors ?? (body?.code ? [body] : [])).map(({ code, status, message }: Record<string, unknown>) => {
    const known = catalogue[code as keyof typeof catalogue]
    if (known?.status !== status || typeof message !== 'string' || message === '')
      throw new Error(`An error without a code and status of the catalogue: ${JSON.stringify(body)}`)
    return message
  })
}
