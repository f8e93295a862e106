// @ts-check
// What a key has used on each day or in each hour, in words and figures. usage.js shows it; plot.js, which is loaded before, draws it.

/** How many hours are kept apart. */
const HOURS = 72
const HOUR_MS = 3_600_000
const DAY_MS = 24 * HOUR_MS

/** @param {Intl.DateTimeFormatOptions} options */
const inUtc = (options) => new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', ...options })
const dayNames = inUtc({ day: 'numeric', month: 'short' })
const longDayNames = inUtc({ dateStyle: 'full' })

/** The status and the meaning of each error, as the page has them. @returns {Record<string, [status: number, meaning: string]>} */
const errorsKnown = () => JSON.parse(byId('content').dataset.errors ?? '')

/**
 * The days or the hours that the API returns.
 *
 * @typedef {{ date?: string, hour?: string, requests: number, refused: number, cost: number, outcomes: Part['outcomes'] }} UsageEntry
 * @param {UsageEntry[]} entries
 * @returns {Part[]}
 */
// biome-ignore lint/correctness/noUnusedVariables: usage.js calls it
function partsOf(entries) {
  const errors = errorsKnown()
  return entries.map(({ date, hour = '', requests, refused, cost, outcomes }) => {
    const limited = outcomes.reduce((sum, one) => sum + (errors[one.code]?.[0] === 429 ? one.requests : 0), 0)
    const day = date ?? hour.slice(0, 10)
    const at = new Date(day)
    const time = hour.slice(11, 16)
    return {
      name: date ? dayNames.format(at) : time,
      longName: date ? longDayNames.format(at) : `${longDayNames.format(at)}, from ${time}`,
      date: day,
      hasHours: date !== undefined && at.getTime() + DAY_MS > Date.now() - (HOURS - 1) * HOUR_MS,
      ...{ requests, limited, errors: refused - limited, cost, outcomes },
    }
  })
}

/** The figures of some days or hours, beside what each looks like. @param {Part[]} parts @param {string} title */
// biome-ignore lint/correctness/noUnusedVariables: usage.js calls it
function showLegend(parts, title) {
  /** @param {'requests' | 'limited' | 'errors' | 'cost'} figure */
  const sum = (figure) => parts.reduce((total, one) => total + one[figure], 0)
  const requests = sum('requests')
  byId('legend-title').textContent = title
  /** @param {number} figure */
  const share = (figure) =>
    figure > 0 ? `${((100 * figure) / requests).toLocaleString('en', { maximumFractionDigits: 1 })} %` : ''
  /** @param {string} className @param {string} term @param {number} figure @param {string} [more] */
  const entry = (className, term, figure, more = '') =>
    element(
      'div',
      { className },
      element('dt', null, term),
      element('dd', null, figure.toLocaleString('en'), element('small', null, more)),
    )
  const [limited, errors] = [sum('limited'), sum('errors')]
  byId('legend').replaceChildren(
    entry('requests', 'Requests', requests),
    entry('limited', 'Over the quota', limited, share(limited)),
    entry('errors', 'Other errors', errors, share(errors)),
    entry('cost', 'Cost', sum('cost')),
  )
}

/** Each error with its number and its meaning, the most frequent first. @param {Part[]} parts @param {string} range */
// biome-ignore lint/correctness/noUnusedVariables: usage.js calls it
function showOutcomes(parts, range) {
  const errors = errorsKnown()
  /** @type {Map<string, number>} */
  const sums = new Map()
  for (const { outcomes } of parts)
    for (const { code, requests } of outcomes) sums.set(code, (sums.get(code) ?? 0) + requests)
  byId('outcomes').hidden = sums.size === 0
  byId('outcomes-title').textContent = `Errors: ${range}`
  const entries = [...sums].sort(([, one], [, other]) => other - one)
  byId('outcomes')
    .querySelector('dl')
    ?.append(
      ...entries.map(([code, requests]) => {
        const [status = '', meaning = 'Counted by another version of the service, or changed by hand.'] =
          errors[code] ?? []
        return element(
          'div',
          null,
          element('dt', null, element('code', null, code), ` ${status}`),
          element('dd', { className: 'figure' }, requests.toLocaleString('en')),
          element('dd', { className: 'meaning' }, meaning),
        )
      }),
    )
}

/**
 * What figures alone do not say.
 *
 * @param {Part[]} parts
 * @param {boolean} isEmpty
 * @param {number} [days] how many days they are, if they are no hours
 * @returns {(Node | string)[]}
 */
// biome-ignore lint/correctness/noUnusedVariables: usage.js calls it
function remarks(parts, isEmpty, days) {
  if (days) {
    const link = element('a', { href: 'docs' }, 'The reference')
    return isEmpty ? [`No request was counted in the last ${days} days. `, link, ' has samples to start with.'] : []
  }
  const first = parts.at(-1)?.name
  if (!first) return ['Its hours are no longer kept apart.']
  if (first === '00:00') return isEmpty ? ['No request was counted on this day.'] : []
  const none = isEmpty ? `From ${first} on, no request was counted.` : ''
  return [`Its hours before ${first} are no longer kept apart. ${none}`]
}
