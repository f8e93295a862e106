// @ts-check
// What the page of a key's usage shows. These are loaded before it: shared.js has the key and reads its quota, which is free;
// figures.js has the figures, and plot.js draws them. Like the reference, it never makes markup of text.

/** Days that are read at first. All hours are read together: to choose among what was read costs nothing. */
const DAYS = 30
/** How often the quota is read again at most, in milliseconds, however wrong the clock of this machine is. */
const PAUSE_MS = 10_000
/** Before a key expires, its owner needs time to get another. */
const SOON_MS = 14 * DAY_MS

/**
 * What a key has used on each day and in each hour, latest first, as far as it was read; why there is no more; and the paths that are
 * being read. Each is read once for each key, when it is first shown, and when the reader asks.
 *
 * @typedef {'days' | 'hours'} What
 * @typedef {{ of: string | null, notes: Partial<Record<What, string>>, pending: Set<string>, waits?: boolean }} PastState
 * @type {PastState & Partial<Record<What, Part[]>>}
 */
let past = { of: null, notes: {}, pending: new Set() }
let daysShown = DAYS
/** The day whose hours are shown, if not days are. @type {Part | undefined} */
let dayShown
let readAt = 0

const dates = new Intl.DateTimeFormat('en-GB', { dateStyle: 'medium', timeStyle: 'short' })
/** @param {string} date @param {boolean} [withTime] */
function moment(date, withTime) {
  const rest = withTime ? ` (in\u00a0${timeUntil(Date.parse(date) / 1000).replace(' ', '\u00a0')})` : ''
  return element('time', { dateTime: date }, dates.format(new Date(date)) + rest)
}

/** What refuses every request that costs something. @param {Quota} quota */
const obstacle = ({ minute, day, key: { bannedUntil } }) =>
  bannedUntil
    ? 'The key is banned. What it has used can be read when the ban is over.'
    : day.remaining === 0
      ? 'Nothing is left of this day. What the key has used can be read after the reset.'
      : minute.remaining === 0
        ? 'Nothing is left of this minute. What the key has used can be read after the reset.'
        : undefined

/** What is to be shown, whether it was read, and where it is read. */
function wanted() {
  if (dayShown) return { what: /** @type {What} */ ('hours'), isRead: past.hours, path: `/hours?hours=${HOURS}` }
  const { days } = past
  const isRead = days && days.length >= daysShown
  return { what: /** @type {What} */ ('days'), isRead, path: `?days=${Math.max(daysShown, DAYS)}` }
}

/** Reads what is shown of the key in use, unless that would be refused: a refusal counts towards a ban. */
async function readPast() {
  const { quota } = known
  if (!quota) return
  past.of = key
  const { what, path } = wanted()
  const note = obstacle(quota)
  past.waits = note !== undefined
  past.notes[what] = note
  if (note || past.pending.has(path)) return showPast()
  // By the time of the answer, it may be another key's.
  const reading = past
  reading.pending.add(path)
  showPast()
  try {
    const { response, text } = await send(`${server()}/quota/usage${path}`)
    if (response.ok) {
      // Hours that are older than days would have other sums.
      if (!dayShown) reading.hours = undefined
      reading[what] = partsOf(JSON.parse(text))
    }
    if (response.status === 429)
      reading.notes[what] = `The API refused to say what the key has used: ${JSON.parse(text).message}`
    else if (!response.ok)
      reading.notes[what] =
        `What the key has used could not be read: the API returned ${response.status}. Press Refresh.`
  } catch {
    reading.notes[what] = 'What the key has used could not be read: the API does not answer. Press Refresh.'
  }
  reading.pending.delete(path)
  // That cost 1.
  if (reading === past) await readQuota()
}

/** Shows the hours of a day or, without one, days. @param {Part} [day] */
function choose(day) {
  dayShown = day
  if (wanted().isRead) showPast()
  else readPast()
}

/** The button is gone then, and the focus would be, too. @param {Part} [day] */
function chooseByButton(day) {
  choose(day)
  byId('days-title').focus()
}

/** Shows what is known. Nothing stays of a key that is not in use, or not valid. */
function showUsage() {
  const { quota, problem } = known
  const asks = key === null || quota === null
  if (past.of !== key || asks) {
    past = { of: null, notes: {}, pending: new Set() }
    dayShown = undefined
  }
  const hadFocus = byId('ask').contains(document.activeElement)
  byId('ask').hidden = !asks
  byId('usage').hidden = !quota
  const [problemText] = byId('problem').children
  byId('problem').hidden = asks || (quota !== undefined && !problem)
  byId('problem').classList.toggle('waiting', !problem)
  if (problemText)
    problemText.textContent = problem ? `${problem}${quota ? ' Below is what was known before.' : ''}` : 'Reading …'
  if (!asks) {
    const field = /** @type {HTMLInputElement} */ (byId('ask-text'))
    field.value = ''
  }
  if (hadFocus && !asks) byId('usage').focus()
  showFacts(quota)
  showPast()
  if (quota && !problem && (past.of !== key || (past.waits && !obstacle(quota)))) readPast()
}

/** @param {Quota | null | undefined} quota */
function showFacts(quota) {
  byId('ban').hidden = !quota?.key.bannedUntil
  for (const id of ['key-name', 'key-plan', 'windows', 'facts', 'ban']) byId(id).replaceChildren()
  if (!quota) return
  const { plan, minute, day } = quota
  const { name, owner, prefix, access, createdAt, expiresAt, bannedUntil } = quota.key
  byId('key-name').textContent = name
  byId('key-plan').textContent = `${plan} plan`
  if (bannedUntil)
    byId('ban').append(
      element('strong', null, 'This key is banned until ', moment(bannedUntil, true), '.'),
      ' Every request that costs something is refused until then. ',
      element('a', { href: 'docs#bans' }, 'Why keys are banned'),
    )
  byId('windows').append(windowBar('minute', minute), windowBar('day', day))
  const expires = expiresAt ? moment(expiresAt, true) : 'never'
  if (expiresAt && Date.parse(expiresAt) < Date.now() + SOON_MS) Object.assign(expires, { className: 'soon' })
  /** @param {string} term @param {Node | string} [value] */
  const fact = (term, value) =>
    value ? element('div', null, element('dt', null, term), element('dd', null, value)) : ''
  byId('facts').append(
    fact('Owner', owner),
    fact('Begins with', element('code', null, prefix)),
    fact('Access', access === 'read' ? 'only read' : 'read and change'),
    fact('Created', moment(createdAt)),
    fact('Expires', expires),
  )
}

function showPast() {
  const { what, isRead, path } = wanted()
  const note = past.notes[what] ?? (past.pending.has(path) && !isRead ? 'Reading …' : '')
  const parts = dayShown ? past.hours?.filter(({ date }) => date === dayShown?.date) : past.days?.slice(0, daysShown)
  const range = dayShown ? dayShown.longName : `Last ${parts?.length} days`
  const isEmpty = parts?.every(({ requests }) => requests === 0) ?? true
  byId('days-title').textContent = dayShown ? 'Per hour' : 'Per day'
  byId('part-name').textContent = dayShown ? 'Hour' : 'Day'
  byId('hint').hidden = dayShown !== undefined
  byId('back').hidden = dayShown === undefined
  byId('days-note').replaceChildren(
    ...(note || !parts ? [note] : remarks(parts, isEmpty, dayShown ? undefined : daysShown)),
  )
  byId('days').hidden = isEmpty
  for (const button of byId('ranges').children)
    button.setAttribute('aria-pressed', String(!dayShown && button.getAttribute('data-days') === String(daysShown)))
  for (const id of ['rows', 'plot', 'legend', 'legend-title', 'outcomes-title']) byId(id).replaceChildren()
  byId('outcomes').querySelector('dl')?.replaceChildren()
  if (!parts || isEmpty) return
  byId('rows').append(...parts.map(rowOf))
  showOutcomes(parts, range)
  showLegend(parts, range)
  const label = `Requests, errors and cost: ${range}. The table has the same figures${dayShown ? '' : ', and leads to hours'}.`
  drawPlot(byId('plot'), parts, label, (part) => showLegend(part ? [part] : parts, part?.longName ?? range), choose)
}

/** @param {Part} part */
function rowOf(part) {
  const { name, date, hasHours, requests, limited, errors, cost } = part
  const button = element('button', { type: 'button' }, date)
  button.addEventListener('click', () => chooseByButton(part))
  const title = hasHours ? button : dayShown ? name : date
  const row = element('tr', null, element('th', { scope: 'row' }, title))
  for (const figure of [requests, limited, errors, cost]) row.append(element('td', null, figure.toLocaleString('en')))
  return row
}

/** Counts down, and reads the quota again when a window, a ban or the key is over. */
function tick() {
  const { quota } = known
  if (!quota || document.hidden) return
  const windows = [quota.minute, quota.day]
  for (const [index, text] of byId('windows').querySelectorAll('.soft').entries()) {
    const { reset = 0 } = windows[index] ?? {}
    text.textContent = reset * 1000 > Date.now() ? `resets in ${timeUntil(reset)}` : ''
  }
  const { bannedUntil, expiresAt } = quota.key
  const ends = [
    // A reset adds nothing to a full window, and each read is a request of the day.
    ...windows.filter(({ limit, remaining }) => remaining < limit).map(({ reset }) => reset * 1000),
    ...[bannedUntil, expiresAt].map((at) => Date.parse(at ?? '')),
  ]
  if (Date.now() - readAt < PAUSE_MS || !ends.some((end) => end <= Date.now())) return
  readAt = Date.now()
  readQuota()
}

document.addEventListener('key', (event) => {
  const { detail: said } = /** @type {CustomEvent<{ text: string, bad: boolean } | undefined>} */ (event)
  if (said) {
    byId('ask-message').textContent = said.text
    byId('ask-message').classList.toggle('bad', said.bad)
    byId('ask-text').setAttribute('aria-invalid', String(said.bad))
  }
  showUsage()
})

document.addEventListener('DOMContentLoaded', () => {
  byId('ask').addEventListener('submit', (event) => {
    event.preventDefault()
    useKey(/** @type {HTMLInputElement} */ (byId('ask-text')).value)
  })
  byId('problem').querySelector('button')?.addEventListener('click', readQuota)
  byId('refresh').addEventListener('click', async () => {
    // What is not shown is read again when it is.
    past[dayShown ? 'days' : 'hours'] = undefined
    const before = past
    await readQuota()
    if (!known.problem && past === before) await readPast()
  })
  byId('back').addEventListener('click', () => chooseByButton())
  byId('ranges').addEventListener('click', ({ target }) => {
    const { days } = /** @type {HTMLElement} */ (target).dataset
    if (!days) return
    daysShown = Number(days)
    choose()
  })
  let width = 0
  new ResizeObserver(() => {
    if (byId('plot').clientWidth === width) return
    width = byId('plot').clientWidth
    showPast()
  }).observe(byId('plot'))
  setInterval(tick, 1000)
})
