// @ts-check
// What the reference and GraphiQL share: the theme and the key. It runs before the first paint, and other scripts use what
// it declares.

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

/** The key in use. */
let key = storage.get('key')

/** @param {string} url @param {RequestInit & { headers?: Record<string, string> }} [init] */
async function send(url, init = {}) {
  const headers = new Headers(init.headers)
  if (key && !headers.has('Authorization') && !headers.has('X-API-Key')) headers.set('Authorization', `Bearer ${key}`)
  const startedAt = performance.now()
  const response = await fetch(url, { ...init, headers, signal: AbortSignal.timeout(30_000) })
  const text = await response.text()
  return { response, text, ms: Math.round(performance.now() - startedAt) }
}

/** @param {string} name @param {{ limit: number, remaining: number, reset: number }} window */
function windowBar(name, { limit, remaining, reset }) {
  const seconds = Math.max(0, Math.floor(reset - Date.now() / 1000))
  const time =
    seconds < 120
      ? `${seconds} s`
      : seconds < 7200
        ? `${Math.round(seconds / 60)} min`
        : `${Math.round(seconds / 3600)} h`
  const label = `${remaining.toLocaleString('en')} of ${limit.toLocaleString('en')} left this ${name}`
  const meter = element('meter', { max: limit, value: remaining, low: limit / 10 })
  meter.setAttribute('aria-label', label)
  return element(
    'p',
    { className: 'window' },
    element('span', null, label),
    element('span', { className: 'soft' }, `resets in ${time}`),
    meter,
  )
}

/** @param {string} text @param {boolean} [bad] */
function sayOfKey(text, bad = false) {
  byId('key-message').textContent = text
  byId('key-message').classList.toggle('bad', bad)
  byId('key-text').setAttribute('aria-invalid', String(bad))
}

function showKey() {
  root.classList.toggle('keyed', key !== null)
  byId('key-remove').hidden = key === null
  if (key) return
  byId('key-summary').textContent = 'API key'
  byId('key-quota').replaceChildren()
}

/** Asks for the plan of the key and for what is left, which costs nothing. */
async function readQuota() {
  let answer
  try {
    answer = await send(`${server()}/quota`)
  } catch {
    sayOfKey('The key could not be checked: the API does not answer. Try again.', true)
    return false
  }
  const { response, text } = answer
  if (!response.ok) {
    const reason =
      response.status === 401
        ? 'This key is not valid. It may be mistyped, revoked or expired. Check that you copied all of it.'
        : response.status === 429
          ? `Too many requests without a valid key. Try again in ${response.headers.get('Retry-After') ?? 60} seconds.`
          : `The key could not be checked: the API returned ${response.status}. Try again.`
    sayOfKey(reason, true)
    byId('key-quota').replaceChildren()
    return false
  }
  const { plan, minute, day } = JSON.parse(text)
  sayOfKey('Requests from this page use your key and count against its quota.')
  byId('key-summary').textContent = `${plan} · ${Math.min(minute.remaining, day.remaining).toLocaleString('en')} left`
  byId('key-quota').replaceChildren(
    element('p', { className: 'plan' }, element('strong', null, plan), ' plan'),
    windowBar('minute', minute),
    windowBar('day', day),
  )
  return true
}

/** @param {string} pasted */
async function useKey(pasted) {
  const text = pasted.trim().replace(/^Bearer\s+/i, '')
  if (!text) return sayOfKey('Paste a key first. It starts with petstore_.', true)
  if (!/^petstore_[!-~]+$/.test(text))
    return sayOfKey('This is not a key of this API: a key starts with petstore_ and has no spaces.', true)
  sayOfKey('Checking …')
  const before = key
  key = text
  if (await readQuota()) {
    storage.set('key', key)
    const field = /** @type {HTMLInputElement} */ (byId('key-text'))
    field.value = ''
  } else key = before
  showKey()
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

async function checkKey() {
  showKey()
  if (key && !(await readQuota())) byId('key-summary').textContent = 'Check key'
}

document.addEventListener('DOMContentLoaded', () => {
  startTheme()
  startKey()
})
