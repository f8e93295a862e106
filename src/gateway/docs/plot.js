// @ts-check
// The plot of what a key has used on each day or in each hour, which usage.js shows.

/**
 * A day or an hour, with its names. Errors because the quota was used up are apart from all others.
 *
 * @typedef {{ name: string, longName: string, date: string, hasHours: boolean, requests: number, limited: number, errors: number,
 * cost: number, outcomes: { code: string, requests: number }[] }} Part
 */

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
 * Bars of requests with errors at their top, and a line of costs, level for a day or an hour.
 *
 * @param {HTMLElement} place
 * @param {Part[]} latestFirst
 * @param {string} label
 * @param {(part: Part | undefined) => void} show is told which one is under the pointer
 * @param {(part: Part) => void} choose is told whose hours to show
 */
// biome-ignore lint/correctness/noUnusedVariables: usage.js calls it
function drawPlot(place, latestFirst, label, show, choose) {
  const parts = latestFirst.toReversed()
  const [width, height, left, top, bottom] = [place.clientWidth, 240, 44, 12, 28]
  // What is hidden has no room.
  if (width === 0) return
  const most = Math.max(...parts.flatMap(({ requests, cost }) => [requests, cost]))
  const step = stepOf(most)
  const lines = Math.ceil(most / step)
  const slot = (width - left) / parts.length
  const middle = (/** @type {number} */ index) => left + slot * (index + 0.5)
  const y = (/** @type {number} */ value) => top + (height - top - bottom) * (1 - value / (lines * step))
  const svg = drawn('svg', {
    viewBox: `0 0 ${width} ${height}`,
    width,
    height,
    role: 'img',
    'aria-label': label,
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
  for (const [index, { name, requests, limited, errors }] of parts.entries()) {
    const x = middle(index) - bar / 2
    const accepted = requests - limited - errors
    svg.append(drawn('rect', { class: 'requests', x, y: y(accepted), width: bar, height: y(0) - y(accepted) }))
    // However few, they show.
    let summit = y(accepted)
    for (const [className, figure] of /** @type {const} */ ([
      ['limited', limited],
      ['errors', errors],
    ])) {
      const height = figure && Math.max(2, y(0) - y(figure))
      summit -= height
      svg.append(drawn('rect', { class: className, x, y: summit, width: bar, height }))
    }
    if ((parts.length - 1 - index) % labelled > 0) continue
    const end = slot < 48 && index === parts.length - 1 ? { x: width, 'text-anchor': 'end' } : { x: middle(index) }
    svg.append(drawn('text', { 'text-anchor': 'middle', ...end, y: height - 8 }, name))
  }
  const d = `M${left} ${y(parts[0]?.cost ?? 0)}${parts.map(({ cost }, index) => `V${y(cost)}H${left + slot * (index + 1)}`).join('')}`
  // Where bars are thin, the halo of the line would hide them.
  if (slot > 6) svg.append(drawn('path', { class: 'halo', d }))
  svg.append(drawn('path', { class: 'cost', d, 'stroke-width': slot > 6 ? 2 : 1 }))
  /** @param {MouseEvent} event */
  const indexOf = (event) => Math.floor((event.offsetX - left) / slot)
  /** @param {PointerEvent | undefined} event */
  const point = (event) => {
    const index = event ? indexOf(event) : -1
    const part = parts[index]
    chosen.setAttribute('x', String(left + slot * index))
    chosen.setAttribute('visibility', part ? 'visible' : 'hidden')
    svg.classList.toggle('leads', part?.hasHours ?? false)
    show(part)
  }
  svg.addEventListener('click', (event) => {
    const part = parts[indexOf(event)]
    if (part?.hasHours) choose(part)
  })
  svg.addEventListener('pointermove', point)
  svg.addEventListener('pointerdown', point)
  svg.addEventListener('pointerleave', () => point(undefined))
  place.replaceChildren(svg)
}
