import axe from 'axe-core'
import { type Browser, chromium, type Page } from 'playwright-core'
import { chromiumPath } from '../support/chromium.js'

/** Chromium, for which every host of the domain `test` is at 127.0.0.1:`port`. */
export const launch = (port: number): Promise<Browser> =>
  chromium.launch({
    executablePath: chromiumPath,
    args: [
      `--host-resolver-rules=MAP *.test 127.0.0.1:${port}`,
      '--headless',
      '--no-sandbox',
      '--disable-gpu',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
    ],
  })

/** Collects what a page must not do: log an error or a warning, throw, or send requests to other hosts. */
export function collectProblems(page: Page, host: string): string[] {
  const found: string[] = []
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) found.push(`${message.type()}: ${message.text()}`)
  })
  page.on('pageerror', (error) => found.push(`thrown: ${error.message}`))
  page.on('request', (request) => {
    const { protocol, hostname, href } = new URL(request.url())
    if (!['data:', 'blob:'].includes(protocol) && hostname !== host) found.push(`requested: ${href}`)
  })
  return found
}

/** What axe-core finds on the current page, or in one part of it, with the elements. */
export async function barriers(page: Page, part = 'html'): Promise<string[]> {
  const session = await page.context().newCDPSession(page)
  // Not through the page, because its policy blocks foreign scripts.
  await session.send('Runtime.evaluate', { expression: axe.source })
  const { result } = await session.send('Runtime.evaluate', {
    expression: `axe.run('${part}', { resultTypes: ['violations'] }).then(({ violations }) => violations)`,
    awaitPromise: true,
    returnByValue: true,
  })
  await session.detach()
  const violations = result.value as {
    id: string
    nodes: { target: string[]; failureSummary: string }[]
  }[]
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ target, failureSummary }) => `${id}: ${target} ${failureSummary}`),
  )
}
