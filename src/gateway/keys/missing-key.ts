import type { HttpRequest } from '../http/index.js'

// What a request has instead of a valid key, in a sentence that shows nothing of a secret.

const HOW = 'Send "Authorization: Bearer <key>" or "X-API-Key: <key>".'

/** Headers and query parameters in which other services take keys. */
const OTHER_HEADERS = /^(api-?key|x-(api-token|auth-token|access-token|auth-key)|access-token)$/i
const OTHER_PARAMETERS = /^((x-)?api[-_]?key|(access|api|auth)[-_]?token|token|key|authorization)$/i

function wrongAuthorization(value: string): string {
  if (value === '') return 'Authorization is empty: is a variable without a value?'
  if (/^bearer$/i.test(value)) return 'Bearer came without a key: is a variable without a value?'
  if (value.startsWith('petstore_')) return 'Authorization has a key without Bearer before it.'
  const [, scheme] = /^([a-z-]{1,20}) /i.exec(value) ?? []
  return scheme
    ? `Authorization has the scheme ${scheme}, not Bearer.`
    : 'Authorization has no Bearer before its value.'
}

function insteadOfKey({ head: { headers }, query }: HttpRequest): string | undefined {
  const { authorization, 'x-api-key': given } = headers
  if (authorization !== undefined) return wrongAuthorization(authorization.trim())
  if (given !== undefined) return 'X-API-Key is empty: is a variable without a value?'
  const header = Object.keys(headers).find((name) => OTHER_HEADERS.test(name))
  if (header) return `The header ${header} is not read.`
  const parameter = [...query.keys()].find((name) => OTHER_PARAMETERS.test(name))
  return (
    parameter &&
    `The query parameter ${parameter} is not read. Addresses are logged: have a key that was in one rotated.`
  )
}

/** Why a request counts as one without a key; undefined if it has nothing like one. */
export function missingKey(request: HttpRequest): string | undefined {
  const found = insteadOfKey(request)
  return found && `${found} ${HOW}`
}

/** Why a text is no key; undefined if it could be one that was mistyped. */
export function noKey(text: string): string | undefined {
  if (/^(undefined|null|none|nil|nan|true|false|\[object \w+\])$/i.test(text))
    return `The API key is "${text}": is a variable without a value?`
  if (/^(\$|%|<|\{\{|\[?your)/i.test(text)) return 'The API key is a placeholder: put your own key in its place.'
  if (/^["'`]/.test(text)) return 'The API key is in quotes: send it without them.'
  if (/^bearer\b/i.test(text)) return `There is one Bearer too many before the API key. ${HOW}`
}
