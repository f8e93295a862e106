import type { ServerId } from './servers.js'

// Bar charts as SVG. The colours are of medium lightness on a transparent ground, so that they read on GitHub's light
// and dark pages alike; a media query would follow the system, which need not agree with the page.

const TEXT = '#737c86'
const LINE = '#a0a8b0'
export const colours: Record<ServerId, string> = {
  gateway: '#3d84e8',
  'fastify-prisma': '#d9773a',
  'fastify-pg': '#8c959f',
  mercurius: '#b565c9',
  postgraphile: '#c2a22e',
  naive: '#3fa37c',
  'gateway-no-key': '#7fb0f0',
  'gateway-single': '#7fb0f0',
  'gateway-no-stock': '#7fb0f0',
  'gateway-one-pet': '#1f5fb8',
  'gateway-plain': '#7fb0f0',
  'gateway-three': '#1f5fb8',
}

interface Bar {
  label: string
  colour: string
  value: number
  /** Written after the bar. */
  text: string
  /** A value to reach, drawn as a line across the bar. */
  target?: number
}

export interface Group {
  label: string
  bars: Bar[]
  /** The value of a full bar; by default the largest of the group. */
  full?: number
}

export interface Plot {
  title: string
  description: string
  groups: Group[]
  /** A value that is marked through all groups, for example 1 for ratios. */
  baseline?: number
}

const WIDTH = 820
const LEFT = 300
const BAR_WIDTH = 370
const BAR = 16
const GAP = 5
const GROUP_GAP = 18
const HEAD = 52

const escapeXml = (text: string) => text.replace(/[&<>"]/g, (char) => `&#${char.charCodeAt(0)};`)

interface TextOptions {
  anchor?: 'start' | 'end'
  size?: number
  bold?: boolean
}

function text(x: number, y: number, value: string, { anchor = 'start', size = 12, bold }: TextOptions = {}) {
  const weight = bold ? ' font-weight="600"' : ''
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" font-size="${size}"${weight}>${escapeXml(value)}</text>`
}

const round = (value: number) => Math.round(value * 10) / 10

export function drawBars({ title, description, groups, baseline }: Plot): string {
  const parts = [text(0, 20, title, { size: 16, bold: true }), text(0, 38, description)]
  let y = HEAD
  for (const { label, bars, full } of groups) {
    const scale = BAR_WIDTH / (full ?? Math.max(...bars.map(({ value, target = 0 }) => Math.max(value, target))))
    const height = bars.length * (BAR + GAP) - GAP
    parts.push(text(0, y + 12, label, { bold: true }))
    bars.forEach((bar, i) => {
      const top = y + i * (BAR + GAP)
      const width = round(bar.value * scale)
      parts.push(
        text(LEFT - 8, top + 12, bar.label, { anchor: 'end' }),
        `<rect x="${LEFT}" y="${top}" width="${width}" height="${BAR}" rx="2" fill="${bar.colour}"/>`,
      )
      const end = Math.max(width, round((bar.target ?? 0) * scale))
      parts.push(text(LEFT + end + 8, top + 12, bar.text))
      if (bar.target !== undefined) {
        const at = round(LEFT + bar.target * scale)
        parts.push(`<path d="M${at} ${top - 2}V${top + BAR + 2}" stroke="${TEXT}" stroke-width="2.5"/>`)
      }
    })
    if (baseline !== undefined) {
      const at = round(LEFT + baseline * scale)
      parts.push(`<path d="M${at} ${y - 4}V${y + height + 4}" stroke="${LINE}" stroke-dasharray="3 3"/>`)
    }
    y += height + GROUP_GAP
  }
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}" role="img" aria-label="${escapeXml(`${title}. ${description}`)}" font-family="system-ui, sans-serif" fill="${TEXT}">`,
    ...parts.map((part) => `  ${part}`),
    '</svg>\n',
  ].join('\n')
}
