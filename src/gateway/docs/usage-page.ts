import { catalogue } from '../../../schema/kit/errors.js'
import { html } from '../../engines/reference/index.js'
import { layout } from './layout.js'

/** The address of the service, and those of what the page loads. */
export interface UsageAddresses {
  baseUrl: string
  /** The path of the base URL. */
  base: string
  style: string
  script: string
  icon: string
}

/** What the page says about errors: the status and the meaning of each code. */
const errors = JSON.stringify(
  Object.fromEntries(
    Object.entries(catalogue).map(([code, { status, description }]) => [
      code,
      [status, description.replaceAll('`', '')],
    ]),
  ),
)

/** A frame without figures: the script of the page reads those of the key in use. */
export const createUsagePage = ({ baseUrl, base, style, script, icon }: UsageAddresses): string =>
  layout({
    title: 'Pet Store usage',
    description:
      'The plan of an API key of the Pet Store API, what is left of it, and what the key has used on each day.',
    address: `${baseUrl}/usage`,
    base,
    icon,
    assets: html`<link rel="stylesheet" href="${style}">
<script src="${script}"></script>`,
    bar: html`<a class="brand" href="${base}/docs"><img src="${icon}" alt="" width="24" height="24">Pet Store</a>
<a class="to-reference" href="${base}/docs">Reference</a>`,
    content: html`<main id="content" tabindex="-1" data-server="${baseUrl}" data-errors="${errors}">
<h1>Usage</h1>
<p class="soft">The plan of your API key, what is left of it, and what it has used on each day and in each hour. Programs read the same from
<a href="${base}/docs#operation-getQuota">GET /quota</a>, <a href="${base}/docs#operation-listUsage">GET /quota/usage</a> and
<a href="${base}/docs#operation-listUsageByHour">GET /quota/usage/hours</a>.</p>
<noscript><p class="note">This page needs JavaScript. Without it, ask the API:
<code>curl -H "Authorization: Bearer $PETSTORE_KEY" ${baseUrl}/quota</code></p></noscript>
<form id="ask" class="card" hidden>
<label for="ask-text">Your API key</label>
<div><input id="ask-text" type="password" autocomplete="off" spellcheck="false" placeholder="petstore_…" aria-describedby="ask-message">
<button type="submit">Show usage</button></div>
<p id="ask-message" role="status">It stays in this browser until you remove it, and is sent only to this API.</p>
</form>
<div id="problem" class="note" role="status" hidden><p></p><button type="button">Try again</button></div>
<div id="usage" tabindex="-1" hidden>
<section class="card" aria-labelledby="key-name">
<div class="head"><h2 id="key-name"></h2><span id="key-plan" class="badge"></span><button type="button" id="refresh">Refresh</button></div>
<p id="ban" class="note banned" hidden></p>
<div id="windows"></div>
<dl id="facts"></dl>
</section>
<section class="card" aria-labelledby="days-title">
<div class="head"><h2 id="days-title" tabindex="-1">Per day</h2><button type="button" id="back" hidden>Back to days</button>
<div id="ranges" role="group" aria-label="Days">${[7, 30, 90].map(
      (days) => html`<button type="button" data-days="${days}">${days} days</button>`,
    )}</div></div>
<p id="days-note" role="status"></p>
<div id="days" hidden>
<p id="legend-title"></p>
<dl id="legend"></dl>
<div id="plot"></div>
<p id="hint" class="soft small">Choose one of the last days, here or in the table, to see its hours.</p>
<details><summary>The same figures as a table</summary><div class="scroll" role="group" aria-label="Table" tabindex="0"><table><caption class="unseen">Usage, the latest first</caption>
<thead><tr><th scope="col" id="part-name"></th><th scope="col">Requests</th><th scope="col">Over the quota</th><th scope="col">Other errors</th><th scope="col">Cost</th></tr></thead>
<tbody id="rows"></tbody></table></div></details>
<section id="outcomes" aria-labelledby="outcomes-title"><h3 id="outcomes-title"></h3><dl></dl></section>
</div>
<p class="soft small">Days and hours are those of UTC. The figures are at most a minute old, and reading them costs 1 of the quota.
Hours are kept for three days.</p>
</section>
</div>
</main>`,
  })
