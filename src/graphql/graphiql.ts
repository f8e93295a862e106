import { createHash } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { renderGraphiQL } from '@graphql-yoga/render-graphiql'
import { projectPath } from '../project.js'

/** What the page opens with. Each operation runs as it is on the sample data. */
const examples = readFileSync(projectPath('src/graphql/examples.graphql'), 'utf8')

/**
 * GraphiQL with nothing from a CDN, and the Content-Security-Policy under which it works: its one script, known by its
 * hash, workers made by that script, and the styles that its editor writes as it goes.
 *
 * @param base the path of the base URL
 */
export function graphiql(base: string) {
  const html = renderGraphiQL({
    title: 'Pet Store GraphiQL',
    favicon: 'data:,',
    endpoint: `${base}/graphql`,
    headers: JSON.stringify({ Authorization: 'Bearer YOUR_KEY' }, null, 2),
    defaultEditorToolsVisibility: 'headers',
    shouldPersistHeaders: true,
    defaultQuery: examples,
    variables: JSON.stringify({ after: 3, limit: 3 }, null, 2),
  } as Parameters<typeof renderGraphiQL>[0])
  const script = html.slice(html.indexOf('<script>') + '<script>'.length, html.lastIndexOf('</script>'))
  const csp = [
    "default-src 'none'",
    `script-src 'sha256-${createHash('sha256').update(script).digest('base64')}'`,
    'worker-src blob:',
    "style-src 'unsafe-inline'",
    'img-src data:',
    'font-src data:',
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')
  return { html, csp }
}
