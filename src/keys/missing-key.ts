import type { HttpRequest } from '../http/request.js'

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

/** Why a request counts as one without a key; undefined if it has nothing like one. */
export function missingKey({ head, query }: HttpRequest): string | undefined {
  const { authorization, 'x-api-key': given } = head.headers
  const header = Object.keys(head.headers).find((name) => OTHER_HEADERS.test(name))
  const parameter = [...query.keys()].find((name) => OTHER_PARAMETERS.test(name))
  const found =
    authorization !== undefined
      ? wrongAuthorization(authorization.trim())
      : given !== undefined
        ? 'X-API-Key is empty: is a variable without a value?'
        : header !== undefined
          ? `The header ${header} is not read.`
          : parameter !== undefined &&
            `The query parameter ${parameter} is not read: addresses are logged, and a key in one is no longer secret.`
  return found ? `${found} ${HOW}` : undefined
}

/** Why a text is no key; undefined if it could be one that was mistyped. */
export function noKey(text: string): string | undefined {
  if (/^(undefined|null|none|nil|nan|true|false|\[object \w+\])$/i.test(text))
    return `The API key is "${text}": is a variable without a value?`
  if (/^(\$|%|<|\{\{|\[?your)/i.test(text)) return 'The API key is a placeholder: put your own key in its place.'
  if (/^["'`]/.test(text)) return 'The API key is in quotes: send it without them.'
  if (/^bearer\b/i.test(text)) return `There is one Bearer too many before the API key. ${HOW}`
}
