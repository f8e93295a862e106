// @ts-check
// The plot of what a key has used on each day, which usage.js shows.

/** @typedef {{ date: string, requests: number, refused: number, cost: number }} DayOfUsage */

const dayNames = new Intl.DateTimeFormat('en-GB', { timeZone: 'UTC', day: 'numeric', month: 'short' })
const shortNumbers = new Intl.NumberFormat('en', { notation: 'compact' })

/** @param {string} name @param {Record<string, string | number>} attributes @param {...string} text */
function drawn(name, attributes, ...text) {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name)
  for (const [attribute, value] of Object.entries(attributes)) made.setAttribute(attribute, String(value))
  made.append(...text)
  return made
}

/** The distance of the lines of a scale to `most`, which has at most five of them: 1, 2 or 5, and zeros. @param {number} most */
function stepOf(most) {
  const power = 10 ** Math.floor(Math.log10(Math.max(1, most / 5)))
  return [1, 2, 5, 10].map((factor) => factor * power).find((step) => most / step <= 5) ?? most
}

/**
 * Bars of requests with refusals at their top, and a line of costs, level for a day.
 *
 * @param {HTMLElement} place
 * @param {DayOfUsage[]} latestFirst
 * @param {(day: DayOfUsage | undefined) => void} show is told the day under the pointer
 */
// biome-ignore lint/correctness/noUnusedVariables: usage.js calls it
function drawPlot(place, latestFirst, show) {
  const days = latestFirst.toReversed()
  const [width, height, left, top, bottom] = [place.clientWidth, 240, 44, 12, 28]
  // What is hidden has no room.
  if (width === 0) return
  const most = Math.max(...days.flatMap(({ requests, cost }) => [requests, cost]))
  const step = stepOf(most)
  const lines = Math.ceil(most / step)
  const slot = (width - left) / days.length
  const middle = (/** @type {number} */ index) => left + slot * (index + 0.5)
  const y = (/** @type {number} */ value) => top + (height - top - bottom) * (1 - value / (lines * step))
  const svg = drawn('svg', {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: 'img',
    'aria-label': `Requests, refusals and cost on each of the last ${days.length} days. The table has the same figures.`,
  })
  const chosen = drawn('rect', {
    class: 'chosen',
    y: top,
    width: slot,
    height: height - top - bottom,
    visibility: 'hidden',
  })
  svg.append(chosen)
  for (let line = 0; line <= lines; line++)
    svg.append(
      drawn('path', { class: 'line', d: `M${left} ${y(line * step)}H${width}` }),
      drawn('text', { x: left - 8, y: y(line * step) + 4, 'text-anchor': 'end' }, shortNumbers.format(line * step)),
    )
  const bar = Math.max(1, Math.min(slot * 0.7, 36))
  const labelled = Math.ceil(72 / slot)
  for (const [index, { date, requests, refused }] of days.entries()) {
    const x = middle(index) - bar / 2
    const accepted = requests - refused
    svg.append(
      drawn('rect', { class: 'requests', x, y: y(accepted), width: bar, height: y(0) - y(accepted) }),
      drawn('rect', {
        class: 'refused',
        x,
        y: y(requests),
        width: bar,
        height: refused && Math.max(2, y(accepted) - y(requests)),
      }),
    )
    if ((days.length - 1 - index) % labelled > 0) continue
    const end = slot < 48 && index === days.length - 1 ? { x: width, 'text-anchor': 'end' } : { x: middle(index) }
    svg.append(drawn('text', { 'text-anchor': 'middle', ...end, y: height - 8 }, dayNames.format(new Date(date))))
  }
  const d = `M${left} ${y(days[0]?.cost ?? 0)}${days.map(({ cost }, index) => `V${y(cost)}H${left + slot * (index + 1)}`).join('')}`
  // Where bars are thin, the halo of the line would hide them.
  if (slot > 6) svg.append(drawn('path', { class: 'halo', d }))
  svg.append(drawn('path', { class: 'cost', d, 'stroke-width': slot > 6 ? 2 : 1 }))
  /** @param {PointerEvent | undefined} event */
  const point = (event) => {
    const index = event ? Math.floor((event.offsetX - left) / slot) : -1
    chosen.setAttribute('x', String(left + slot * index))
    chosen.setAttribute('visibility', days[index] ? 'visible' : 'hidden')
    show(days[index])
  }
  svg.addEventListener('pointermove', point)
  svg.addEventListener('pointerdown', point)
  svg.addEventListener('pointerleave', () => point(undefined))
  place.replaceChildren(svg)
}
