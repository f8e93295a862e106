// @ts-check
// What the pages share: the theme and the key. It runs before the first paint, and other scripts use what it declares.

const root = document.documentElement

/** What this browser keeps. Where storage is forbidden, a choice lasts as long as the page. */
const storage = {
  /** @param {string} name */
  get(name) {
    try {
      return localStorage.getItem(`petstore-${name}`)
    } catch {
      return null
    }
  },
  /** @param {string} name @param {string | null} value */
  set(name, value) {
    try {
      if (value === null) localStorage.removeItem(`petstore-${name}`)
      else localStorage.setItem(`petstore-${name}`, value)
    } catch {}
  },
}

// Before the first paint, so that nothing moves or flashes.
root.dataset.scripted = ''
root.dataset.theme = storage.get('theme') ?? 'system'
// Where commands that are shown expect the key.
root.dataset.keyVariable = '$PETSTORE_KEY'

/**
 * @template {HTMLElement} [T=HTMLElement]
 * @param {string} id
 */
const byId = (id) => /** @type {T} */ (document.getElementById(id))

/**
 * An element with its content: text and other elements.
 *
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} name
 * @param {Partial<HTMLElementTagNameMap[K]> | null} properties
 * @param {(Node | string)[]} content
 */
function element(name, properties, ...content) {
  const made = /** @type {HTMLElement} */ (document.createElement(name))
  Object.assign(made, properties)
  made.append(...content)
  return /** @type {HTMLElementTagNameMap[K]} */ (made)
}

// Theme

const themes = ['system', 'light', 'dark']

function startTheme() {
  const button = byId('theme')
  const show = () => {
    button.setAttribute('aria-label', `Theme: ${root.dataset.theme}`)
    button.title = `Theme: ${root.dataset.theme}`
  }
  button.addEventListener('click', () => {
    root.dataset.theme = themes[(themes.indexOf(root.dataset.theme ?? '') + 1) % themes.length] ?? 'system'
    storage.set('theme', root.dataset.theme)
    show()
  })
  show()
}

// The key

const server = () => byId('content').dataset.server ?? ''

/**
 * @typedef {{ limit: number, remaining: number, reset: number }} QuotaWindow
 * @typedef {object} KeyFacts
 * @property {string} name
 * @property {string} [owner]
 * @property {string} prefix
 * @property {string} access
 * @property {string} createdAt
 * @property {string} [expiresAt]
 * @property {string} [bannedUntil]
 * @typedef {{ plan: string, minute: QuotaWindow, day: QuotaWindow, key: KeyFacts }} Quota
 */

/** The key in use. */
let key = storage.get('key')

/**
 * What is known of it: its quota (null: it is not valid), and why that could not be read. The event `key` says that the key
 * or this may have changed.
 *
 * @type {{ quota?: Quota | null, problem?: string }}
 */
let known = {}

/** @param {{ text: string, bad: boolean }} [said] */
const tellPage = (said) => document.dispatchEvent(new CustomEvent('key', { detail: said }))

/** @param {string} url @param {RequestInit & { headers?: Record<string, string> }} [init] */
async function send(url, init = {}) {
  const headers = new Headers(init.headers)
  if (key && !headers.has('Authorization') && !headers.has('X-API-Key')) headers.set('Authorization', `Bearer ${key}`)
  const startedAt = performance.now()
  const response = await fetch(url, { ...init, headers, signal: AbortSignal.timeout(30_000) })
  const text = await response.text()
  return { response, text, ms: Math.round(performance.now() - startedAt) }
}

/** How long it is until then. @param {number} at in Unix seconds */
function timeUntil(at) {
  const seconds = Math.max(0, Math.floor(at - Date.now() / 1000))
  return seconds < 120
    ? `${seconds} s`
    : seconds < 7200
      ? `${Math.round(seconds / 60)} min`
      : seconds < 172_800
        ? `${Math.round(seconds / 3600)} h`
        : `${Math.round(seconds / 86_400)} days`
}

/** @param {string} name @param {QuotaWindow} window */
function windowBar(name, { limit, remaining, reset }) {
  const label = `${remaining.toLocaleString('en')} of ${limit.toLocaleString('en')} left this ${name}`
  const meter = element('meter', { max: limit, value: remaining, low: limit / 10 })
  meter.setAttribute('aria-label', label)
  return element(
    'p',
    { className: 'window' },
    element('span', null, label),
    element('span', { className: 'soft' }, `resets in ${timeUntil(reset)}`),
    meter,
  )
}

/** @param {string} text @param {boolean} [bad] */
function sayOfKey(text, bad = false) {
  byId('key-message').textContent = text
  byId('key-message').classList.toggle('bad', bad)
  byId('key-text').setAttribute('aria-invalid', String(bad))
  tellPage({ text, bad })
}

/** Shows whether there is a key; of one that was in use before, nothing stays. */
function showKey() {
  known = {}
  root.classList.toggle('keyed', key !== null)
  byId('key-remove').hidden = key === null
  byId('key-summary').textContent = 'API key'
  byId('key-quota').replaceChildren()
  tellPage()
}

const NOT_VALID = 'This key is not valid. It may be mistyped, revoked or expired. Check that you copied all of it.'

/** Asks for the plan of a key and for what is left, which costs nothing. @param {string} asked @returns {Promise<typeof known>} */
async function askQuota(asked) {
  try {
    const { response, text } = await send(`${server()}/quota`, { headers: { Authorization: `Bearer ${asked}` } })
    if (response.ok) return { quota: JSON.parse(text) }
    if (response.status === 401) return { quota: null, problem: NOT_VALID }
    return {
      problem:
        response.status === 429
          ? `Too many requests without a valid key. Try again in ${response.headers.get('Retry-After') ?? 60} seconds.`
          : `The key could not be checked: the API returned ${response.status}. Try again.`,
    }
  } catch {
    return { problem: 'The key could not be checked: the API does not answer. Try again.' }
  }
}

/** @param {typeof known} found */
function showQuota({ quota, problem }) {
  known = { quota: quota === undefined ? known.quota : quota, problem }
  if (quota) {
    const { plan, minute, day } = quota
    byId('key-summary').textContent = `${plan} · ${Math.min(minute.remaining, day.remaining).toLocaleString('en')} left`
    byId('key-quota').replaceChildren(
      element('p', { className: 'plan' }, element('strong', null, plan), ' plan'),
      windowBar('minute', minute),
      windowBar('day', day),
    )
  } else {
    if (!known.quota) byId('key-summary').textContent = 'Check key'
    byId('key-quota').replaceChildren()
  }
  sayOfKey(problem ?? 'Requests from this page use your key and count against its quota.', problem !== undefined)
}

/** Reads the quota of the key in use. */
async function readQuota() {
  const asked = key
  const found = await askQuota(asked ?? '')
  if (asked === key) showQuota(found)
}

/** @param {string} pasted */
async function useKey(pasted) {
  const text = pasted.trim().replace(/^Bearer\s+/i, '')
  if (!text) return sayOfKey('Paste a key first. It starts with petstore_.', true)
  if (!/^petstore_[!-~]+$/.test(text))
    return sayOfKey('This is not a key of this API: a key starts with petstore_ and has no spaces.', true)
  sayOfKey('Checking …')
  const found = await askQuota(text)
  if (!found.quota) {
    byId('key-quota').replaceChildren()
    return sayOfKey(found.problem ?? '', true)
  }
  key = text
  storage.set('key', key)
  const field = /** @type {HTMLInputElement} */ (byId('key-text'))
  field.value = ''
  showKey()
  showQuota(found)
}

function startKey() {
  byId('key-form').addEventListener('submit', (event) => {
    event.preventDefault()
    useKey(/** @type {HTMLInputElement} */ (byId('key-text')).value)
  })
  byId('key-remove').addEventListener('click', () => {
    key = null
    storage.set('key', null)
    showKey()
    sayOfKey('The key was removed from this browser.')
  })
  byId('key').addEventListener('toggle', (event) => {
    if (/** @type {ToggleEvent} */ (event).newState !== 'open') return
    byId('key-text').focus({ preventScroll: true })
    if (key) readQuota()
  })
  // The key that another page of this browser uses or removes.
  addEventListener('storage', (event) => {
    if (event.key !== 'petstore-key') return
    key = event.newValue
    checkKey()
  })
  checkKey()
}

function checkKey() {
  showKey()
  if (key) readQuota()
}

document.addEventListener('DOMContentLoaded', () => {
  startTheme()
  startKey()
})
