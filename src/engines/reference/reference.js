// @ts-check
// The page can be read without this script. It adds what needs one: the chosen language of samples, copying, search, and
// trying. The script of the frame is loaded before it, and declares `root`, `storage`, `byId`, `element`, `server`, `send`, `key` and
// `readQuota`. It never makes markup of text: the policy of the page forbids it.

// Before the first paint, so that nothing moves.
root.dataset.language = storage.get('language') ?? 'curl'

/**
 * @param {string} selector
 * @param {ParentNode} [within]
 */
const all = (selector, within = document) => /** @type {HTMLElement[]} */ ([...within.querySelectorAll(selector)])

// The language of samples, chosen once for all operations

function startLanguages() {
  const buttons = all('button[data-language]')
  const languages = new Set(buttons.map((button) => button.dataset.language))
  if (!languages.has(root.dataset.language)) root.dataset.language = [...languages][0]
  const show = () => {
    for (const button of buttons)
      button.setAttribute('aria-pressed', String(button.dataset.language === root.dataset.language))
  }
  document.addEventListener('click', ({ target }) => {
    const button = /** @type {HTMLElement} */ (target).closest('button[data-language]')
    if (!(button instanceof HTMLElement) || !button.dataset.language) return
    // What was clicked stays where it is, although samples above it change their height.
    const before = button.getBoundingClientRect().top
    root.dataset.language = button.dataset.language
    storage.set('language', button.dataset.language)
    show()
    scrollBy({ top: button.getBoundingClientRect().top - before, behavior: 'instant' })
  })
  show()
}

// Copying

/** @param {string} text */
async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text)
  // Browsers offer the clipboard only over HTTPS and on localhost.
  const field = element('textarea', { value: text })
  field.style.position = 'fixed'
  document.body.append(field)
  field.select()
  const copied = document.execCommand('copy')
  field.remove()
  if (!copied) throw new Error('The browser does not allow copying.')
}

/** @param {HTMLElement} block */
function addCopyButton(block) {
  const button = element('button', { type: 'button', className: 'copy' }, 'Copy')
  const answer = element('span', { className: 'unseen' })
  answer.setAttribute('role', 'status')
  button.addEventListener('click', async () => {
    const [text, spoken] = await copy(block.querySelector('pre')?.textContent ?? '').then(
      () => ['Copied', 'Copied'],
      () => ['Failed', 'Your browser does not allow copying. Select the text instead.'],
    )
    button.textContent = text ?? ''
    answer.textContent = spoken ?? ''
    setTimeout(() => {
      button.textContent = 'Copy'
      answer.textContent = ''
    }, 2000)
  })
  block.append(button, answer)
}

// Where the reader is

function startNavigation() {
  const navigation = byId('navigation')
  const links = new Map(all('a', navigation).map((link) => [(link.getAttribute('href') ?? '').slice(1), link]))
  const sections = [...links.keys()].flatMap((id) => document.getElementById(id) ?? [])
  /** @type {HTMLElement | undefined} */
  let current
  const follow = () => {
    const atEnd = innerHeight + scrollY >= root.scrollHeight - 2
    const here = atEnd ? sections.at(-1) : sections.findLast((section) => section.getBoundingClientRect().top < 140)
    // At the end of the page, what the address names may never reach the top.
    const named = atEnd && document.getElementById(fragment())
    const link = links.get(named && links.has(named.id) ? named.id : (here?.id ?? ''))
    if (link === current) return
    current?.removeAttribute('aria-current')
    link?.setAttribute('aria-current', 'location')
    current = link
    if (!link) return
    const { top, bottom } = link.getBoundingClientRect()
    const frame = navigation.getBoundingClientRect()
    if (top < frame.top + 40 || bottom > frame.bottom - 40) navigation.scrollTop += top - frame.top - frame.height / 3
  }
  let waiting = false
  const soon = () => {
    if (waiting) return
    waiting = true
    requestAnimationFrame(() => {
      waiting = false
      follow()
    })
  }
  addEventListener('scroll', soon, { passive: true })
  addEventListener('resize', soon)
  addEventListener('hashchange', soon)
  navigation.addEventListener('click', ({ target }) => {
    if (/** @type {HTMLElement} */ (target).closest('a')) navigation.hidePopover()
  })
  follow()
}

/** What the address names after its #. */
function fragment() {
  try {
    return decodeURIComponent(location.hash.slice(1))
  } catch {
    return location.hash.slice(1)
  }
}

function startAddress() {
  const message = byId('missing')
  const check = () => {
    const name = fragment()
    // The operationId, which clients and logs show.
    if (document.getElementById(`operation-${name}`)) return location.replace(`#operation-${name}`)
    message.hidden = name === '' || document.getElementById(name) !== null
    if (message.hidden) return
    const search = element('button', { type: 'button', className: 'link', onclick: () => openSearch(name) }, 'Search')
    message.replaceChildren(`There is no section “${name}” on this page. `, search, ' for it, or use the navigation.')
    scrollTo({ top: 0, behavior: 'instant' })
  }
  addEventListener('hashchange', check)
  check()
}

// Search

/**
 * @typedef {object} Entry
 * @property {string} id
 * @property {string} kind
 * @property {string} title
 * @property {string} hint
 * @property {string[]} words
 * @property {string} text
 */

/** @type {Entry[] | undefined} */
let entries

/** Everything on the page that can be found. */
function readEntries() {
  return all('[data-find]').map((found) => {
    const { find: kind = '', title = '', hint, words = '' } = found.dataset
    const described =
      found.querySelector('p ~ p')?.textContent ?? found.querySelector('td:last-child')?.textContent ?? ''
    const section = found.tagName === 'SECTION' ? found : found.closest('.row')
    const text = kind === 'Guide' ? section?.textContent : described
    return {
      id: found.id,
      kind,
      title,
      hint: hint ?? (kind === 'Guide' ? '' : described),
      words: words.split(', '),
      text: (text ?? '').toLowerCase(),
    }
  })
}

/** How well an entry answers what is typed; 0 where it does not. @param {Entry} entry @param {string} typed @returns {number} */
function score({ title, hint, kind, words, text }, typed) {
  const [name, word] = [title.toLowerCase(), typed.toLowerCase()]
  // Who types `Key` may mean the schema; who types `key` or `sort` wants to know how that works.
  if (title === typed && !kind.startsWith('Parameter')) return 100
  if (words.includes(word)) return 90
  if (name === word) return 80
  if (name.startsWith(word)) return 60
  if (name.split(/[^a-z0-9]+/).some((part) => part === word)) return 50
  if (words.some((one) => one.startsWith(word))) return 40
  if (name.includes(word)) return 30
  if (`${hint} ${kind}`.toLowerCase().includes(word)) return 10
  return text.includes(word) ? 2 : 0
}

/** @param {string} query */
function search(query) {
  entries ??= readEntries()
  const words = query.split(/\s+/).filter(Boolean)
  return entries
    .map((entry) => ({ entry, scores: [query.trim(), ...words].map((word) => score(entry, word)) }))
    .filter(({ scores: [all, ...each] }) => all || each.every(Boolean))
    .map(({ entry, scores }) => ({ entry, total: scores.reduce((sum, one) => sum + one, 0) }))
    .sort((a, b) => b.total - a.total)
    .slice(0, 50)
    .map(({ entry }) => entry)
}

function showResults() {
  const query = /** @type {HTMLInputElement} */ (byId('search-text')).value
  const found = query.trim() ? search(query) : []
  byId('search-results').replaceChildren(
    ...found.map(({ id, kind, title, hint }, index) =>
      element(
        'a',
        { id: `result-${index}`, href: `#${encodeURIComponent(id)}`, role: 'option', tabIndex: -1 },
        element('span', { className: 'title' }, title),
        element('span', { className: 'kind' }, kind),
        element('span', { className: 'hint' }, hint),
      ),
    ),
  )
  byId('search-state').textContent = !query.trim()
    ? ''
    : found.length > 0
      ? `${found.length} ${found.length === 1 ? 'result' : 'results'}`
      : `Nothing on this page matches “${query.trim()}”.`
  choose(0)
}

/** Marks a result as the one that Enter opens. @param {number} index */
function choose(index) {
  const results = all('a', byId('search-results'))
  const chosen = results[(index + results.length) % (results.length || 1)]
  for (const result of results) result.setAttribute('aria-selected', String(result === chosen))
  chosen?.scrollIntoView({ block: 'nearest' })
  if (chosen) byId('search-text').setAttribute('aria-activedescendant', chosen.id)
  else byId('search-text').removeAttribute('aria-activedescendant')
}

function openSearch(query = '') {
  const text = /** @type {HTMLInputElement} */ (byId('search-text'))
  const dialog = /** @type {HTMLDialogElement} */ (byId('search'))
  if (!dialog.open) dialog.showModal()
  if (query) text.value = query
  text.select()
  showResults()
}

function startSearch() {
  const dialog = /** @type {HTMLDialogElement} */ (byId('search'))
  byId('open-search').addEventListener('click', () => openSearch())
  addEventListener('keydown', (event) => {
    const typing = /** @type {HTMLElement} */ (event.target).closest('input, textarea, select')
    const asked = event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey
    if (!asked && !((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === 'k')) return
    event.preventDefault()
    openSearch()
  })
  byId('search-text').addEventListener('input', showResults)
  byId('search-text').addEventListener('keydown', (event) => {
    const results = all('a', byId('search-results'))
    const chosen = results.findIndex((result) => result.getAttribute('aria-selected') === 'true')
    if (event.key === 'ArrowDown') choose(chosen + 1)
    else if (event.key === 'ArrowUp') choose(chosen - 1)
    else if (event.key === 'Enter') results[chosen]?.click()
    else return
    event.preventDefault()
  })
  dialog.addEventListener('click', ({ target }) => {
    if (target === dialog || /** @type {HTMLElement} */ (target).closest('a')) dialog.close()
  })
}

// Trying

const tokens = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g

/** JSON with the colors of the other code blocks. @param {string} text */
function highlight(text) {
  const code = element('code', null)
  let end = 0
  for (const match of text.matchAll(tokens)) {
    const [whole, string, colon] = match
    const kind = colon ? 'attr' : string ? 'string' : /\d/.test(whole) ? 'number' : 'literal'
    const token = string ?? whole
    code.append(text.slice(end, match.index), element('span', { className: `hljs-${kind}` }, token))
    end = match.index + token.length
  }
  code.append(text.slice(end))
  return code
}

/** Text whose words break nowhere, like those of the other code blocks. @param {string} text */
const unbroken = (text) =>
  text
    .split(/([\w-]*-[\w-]+)/)
    .map((part, i) => (i % 2 && part.length <= 30 ? element('span', { className: 'word' }, part) : part))

/** @param {string} title @param {string | Node} content */
function codeBlock(title, content) {
  const code = typeof content === 'string' ? unbroken(content) : [content]
  const block = element('div', { className: 'code' }, element('pre', null, ...code))
  addCopyButton(block)
  return element('div', null, element('p', { className: 'label' }, title), block)
}

/** @param {string} text */
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** @param {string} text */
const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`

/** The request that a form describes. @param {HTMLFormElement} form */
function requestOf(form) {
  const { method = 'GET', path: template = '' } = form.dataset
  const query = new URLSearchParams()
  /** @type {Record<string, string>} */
  const headers = {}
  /** @type {string | undefined} */
  let body
  let path = template
  for (const control of form.elements) {
    if (
      !(
        control instanceof HTMLInputElement ||
        control instanceof HTMLSelectElement ||
        control instanceof HTMLTextAreaElement
      )
    )
      continue
    const { name, value, dataset } = control
    if (dataset.type) {
      headers['Content-Type'] = dataset.type
      body = value
    } else if (dataset.in === 'path') path = path.replace(`{${name}}`, encodeURIComponent(value))
    else if (value === '') continue
    else if (dataset.in === 'header') headers[name] = value
    else
      for (const part of 'list' in dataset ? value.split(/[\s,]+/).filter(Boolean) : [value]) query.append(name, part)
  }
  const url = `${server()}${path}${query.size > 0 ? `?${query}` : ''}`
  const curl = [
    `curl -i ${method === 'GET' ? '' : `-X ${method} `}${quoted(url)}`,
    ...(key ? [`-H "Authorization: Bearer ${root.dataset.keyVariable}"`] : []),
    ...Object.entries(headers).map(([name, value]) => `-H ${quoted(`${name}: ${value}`)}`),
    ...(body === undefined ? [] : [`-d ${quoted(body)}`]),
  ].join(' \\\n  ')
  return { url, method, headers, body, curl }
}

/** @param {HTMLFormElement} form */
async function attempt(form) {
  const result = /** @type {HTMLElement} */ (form.nextElementSibling)
  const answer = /** @type {HTMLElement} */ (result.nextElementSibling)
  const button = /** @type {HTMLButtonElement} */ (form.querySelector('[type=submit]'))
  const { url, curl, ...init } = requestOf(form)
  button.disabled = true
  try {
    const { response, text, ms } = await send(url, init)
    const headers = [...response.headers].map(([name, value]) => `${name}: ${value}`)
    result.replaceChildren(element('strong', null, `${response.status} ${response.statusText}`.trim()), ` in ${ms} ms`)
    result.classList.toggle('bad', !response.ok)
    answer.replaceChildren(
      text ? codeBlock('Body', highlight(pretty(text))) : element('p', null, 'The answer has no body.'),
      element(
        'details',
        null,
        element('summary', null, `Headers (${headers.length})`),
        codeBlock('', headers.join('\n')),
      ),
    )
  } catch (error) {
    const reason =
      error instanceof DOMException && error.name === 'TimeoutError'
        ? 'No answer within 30 seconds.'
        : Object.values(init.headers).some((value) => /[^\t -~\u0080-\u00ff]/.test(value))
          ? 'A header has a character that HTTP does not allow. Nothing was sent.'
          : `No answer: ${server()} cannot be reached from this page.`
    result.replaceChildren(reason)
    result.classList.add('bad')
    answer.replaceChildren()
  }
  answer.append(codeBlock(key ? `Sent, with your key in ${root.dataset.keyVariable}` : 'Sent', curl))
  button.disabled = false
  if (key) readQuota()
}

document.addEventListener('DOMContentLoaded', () => {
  startLanguages()
  startAddress()
  startNavigation()
  startSearch()
  for (const block of all('.code')) addCopyButton(block)
  document.addEventListener('submit', (event) => {
    const form = /** @type {HTMLFormElement} */ (event.target)
    if (!form.dataset.path) return
    event.preventDefault()
    attempt(form)
  })
})
