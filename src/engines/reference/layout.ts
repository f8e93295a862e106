import { type Content, html, type Markup } from './html.js'

const icons = {
  menu: 'M2 4h12M2 8h12M2 12h12',
  search: 'M7 2a5 5 0 1 0 0 10A5 5 0 0 0 7 2m3.6 8.6L14 14',
  key: 'M9.5 2a4.5 4.5 0 0 0-4.2 6.1L2 11.4V14h2.6v-1.8h1.8v-1.8l1-1A4.5 4.5 0 1 0 9.5 2m1.5 2.8v.4',
  theme: 'M8 2a6 6 0 1 0 0 12A6 6 0 0 0 8 2v12M8 5l3.5 1M8 8h5M8 11l3.5-1',
}

export const icon = (name: keyof typeof icons) =>
  html`<svg viewBox="0 0 16 16" aria-hidden="true"><path d="${icons[name]}"/></svg>`

interface Layout {
  title: string
  description: string
  /** Where the page is. */
  address: string
  /** The path of the base URL. */
  base: string
  /** The address of the favicon. */
  icon: string
  /** Style sheets and scripts. */
  assets: Markup
  /** What the bar at the top holds beside the theme and the key. */
  bar: Content
  content: Content
}

/** What the pages share: a bar at the top, the theme, and the key. */
export const layout = ({ title, description, address, base, icon: favicon, assets, bar, content }: Layout): string =>
  html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="description" content="${description}">
<title>${title}</title>
<link rel="canonical" href="${address}">
<link rel="icon" href="${favicon}" type="image/svg+xml">
${assets}
</head>
<body>
<a class="skip" href="#content">Skip to content</a>
<header>
${bar}
<button type="button" class="scripted" id="theme">${icon('theme')}</button>
<button type="button" class="scripted key" popovertarget="key">${icon('key')}<span id="key-summary">API key</span></button>
</header>
<div id="key" popover role="dialog" aria-labelledby="key-title">
<h2 id="key-title">Your API key</h2>
<form id="key-form">
<label for="key-text">API key</label>
<input id="key-text" type="password" autocomplete="off" spellcheck="false" placeholder="petstore_…" aria-describedby="key-message">
<button type="submit">Use key</button>
<button type="button" id="key-remove" hidden>Remove key</button>
</form>
<p id="key-message" role="status">Paste a key to send requests from this page. It stays in this browser, and is sent only to this API.</p>
<div id="key-quota"></div>
<p class="keyed-only"><a href="${base}/usage">What it has used</a></p>
</div>
${content}
</body>
</html>
`.text
