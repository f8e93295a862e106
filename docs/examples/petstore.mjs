// What import.mjs and export.mjs share. Needs Node 20, nothing else.
import { setTimeout as sleep } from 'node:timers/promises'

const { PETSTORE_URL: url = '', PETSTORE_KEY: key } = process.env
/** How often a request is sent that gets no answer, or one that only says to try again. */
const ATTEMPTS = 6

/** Progress and errors go to standard error. */
export const say = (text) => console.error(text)

export function fail(code, text) {
  say(text)
  process.exit(code)
}

/** The arguments of the script. With --help, it prints the text and ends. */
export function readArguments(help) {
  const args = process.argv.slice(2)
  if (args.includes('--help')) {
    console.log(help)
    process.exit()
  }
  if (!URL.canParse(url) || !key)
    fail(2, 'Set PETSTORE_URL, such as https://petstore.example/v1, and PETSTORE_KEY. --help says more.')
  return args
}

/**
 * Sends a request until it has an answer that will not change. So it must be safe to repeat.
 *
 * @param refused what to do with the message of a request that the service refuses
 */
export async function send(path, { method, body, headers, refused = (message) => fail(1, message) } = {}) {
  const target = path.startsWith('/') ? url.replace(/\/$/, '') + path : path
  for (let attempt = 1; ; ) {
    const { response, text, error } = await fetch(target, {
      method,
      body,
      headers: { ...headers, Authorization: `Bearer ${key}`, 'Content-Type': 'application/json' },
      signal: AbortSignal.timeout(30_000),
    })
      .then(async (response) => ({ response, text: await response.text() }))
      .catch((error) => ({ error }))
    if (response?.ok) return { data: JSON.parse(text), headers: response.headers }

    const isJson = response?.headers.get('content-type')?.startsWith('application/json')
    const message = error
      ? `No answer from ${target}: ${error.cause?.code ?? error.message}.`
      : isJson
        ? JSON.parse(text).message
        : `${target} returned ${response.status}.`
    const retryAfter = Number(response?.headers.get('retry-after') ?? 0)
    if (response && response.status < 500 && !retryAfter) return refused(message)
    // It is known when a limit ends. Everything else may last.
    const isLimit = response?.status === 429
    if (!isLimit && attempt === ATTEMPTS) fail(3, `${message} Start the script again later.`)
    const seconds = isLimit ? retryAfter : Math.max(retryAfter, 2 ** (attempt - 1))
    if (!isLimit) attempt++
    say(`${message} The next attempt is in ${seconds} s.`)
    await sleep((seconds + Math.random()) * 1000)
  }
}

/** The pages of a list, one after the other: each has a link to the next one. */
export async function* readPages(list, question = []) {
  let read = 0
  for (let page = `${list}?${new URLSearchParams([['limit', '100'], ...question])}`; page; ) {
    const { data, headers } = await send(page)
    read += data.length
    say(`${list}: ${read} read`)
    yield data
    page = /<([^>]+)>; rel="next"/.exec(headers.get('link'))?.[1]
  }
}

/** All items of a list. */
export async function readAll(list) {
  const items = []
  for await (const page of readPages(list)) items.push(...page)
  return items
}
