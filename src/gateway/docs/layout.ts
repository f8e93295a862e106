import { type Content, html, icon, type Markup } from '../../engines/reference/index.js'

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
<p class="keyless">No key yet? The <a href="${base}/docs#top">introduction</a> says where to get one.</p>
<div id="key-quota"></div>
<p class="keyed-only"><a href="${base}/usage">What it has used</a></p>
</div>
${content}
</body>
</html>
`.text
