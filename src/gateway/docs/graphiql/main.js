// @ts-check
// GraphiQL with the schema, examples, key and theme of this service. shared.js, which is loaded before it, declares what is
// neither imported nor declared here.

import { useEditorContext, useHeadersEditorState, useOperationsEditorState } from '@graphiql/react'
import { GraphiQL } from 'graphiql'
import { buildSchema, parse } from 'graphql'
import { createElement, useEffect, useState } from 'react'
import { createRoot } from 'react-dom/client'
import examples from './examples.graphql'

/** @type {Record<string, object>} */
const variables = { NextPage: { after: 3, limit: 3 } }

/** Each example in a tab of its own, with the comments above it. */
function exampleTabs() {
  const { definitions } = parse(examples)
  return definitions.map((definition, index) => {
    const name = 'name' in definition ? (definition.name?.value ?? '') : ''
    const query = examples.slice(definitions[index - 1]?.loc?.end ?? 0, definition.loc?.end).trim()
    return { query: `${query}\n`, variables: variables[name] ? JSON.stringify(variables[name], null, 2) : '' }
  })
}

/** @typedef {import('react').ComponentProps<typeof GraphiQL>['fetcher']} Fetcher */

/** GraphiQL keeps the operation name of the tab that was open before. @param {Parameters<Fetcher>[0]} parameters */
function withoutForeignName({ operationName, ...parameters }) {
  try {
    const { definitions } = parse(parameters.query)
    const isKnown = definitions.some((definition) => 'name' in definition && definition.name?.value === operationName)
    return isKnown ? { operationName, ...parameters } : parameters
  } catch {
    return parameters
  }
}

/** Asks for a key where it is entered. */
function askForKey() {
  byId('key').showPopover()
  if (!key) sayOfKey('Requests need a key: paste yours here.', true)
}

/** @param {string} message */
const failure = (message) => ({ errors: [{ message }] })

/** @type {Fetcher} */
async function fetcher(parameters, { headers = {} } = {}) {
  const ownKey = hasOwnKey(JSON.stringify(headers))
  // Of what is sent now: before there is an answer, the reader may change it, or open another tab.
  const tell = outcomeOf(parameters.query)
  tell('')
  if (!key && !ownKey) {
    askForKey()
    return failure('Nothing was sent. Add your API key (at the top right), then run the operation again.')
  }
  tell('Sent …')
  let answer
  try {
    const accept = 'application/graphql-response+json, application/json;q=0.9'
    answer = await send(`${server()}/graphql`, {
      method: 'POST',
      headers: { Accept: accept, 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(withoutForeignName(parameters)),
    })
  } catch (error) {
    tell('No answer.')
    return failure(
      error instanceof DOMException && error.name === 'TimeoutError'
        ? 'No answer within 30 seconds.'
        : `No answer: ${server()} cannot be reached from this page, or a header has a character that HTTP does not allow.`,
    )
  }
  const { response, text, ms } = answer
  const cost = response.headers.get('x-ratelimit-cost')
  tell(`${`${response.status} ${response.statusText}`.trim()} in ${ms} ms${cost ? `, at a cost of ${cost}` : ''}.`)
  if (!ownKey) {
    if (response.status === 401) askForKey()
    checkKey()
  }
  try {
    return JSON.parse(text)
  } catch {
    return failure(`The answer is not JSON. A proxy may have sent it: ${text.slice(0, 200)}`)
  }
}

/** Whether a request has a key of its own. @param {string} headers JSON, as it is entered */
const hasOwnKey = (headers) => /"(authorization|x-api-key)"\s*:/i.test(headers)

/** What Run will do with a document. @param {string} query @param {boolean} hasKey */
function whatRunDoes(query, hasKey) {
  if (!query.replace(/#.*/g, '').trim()) return 'Write an operation, then run it. The answer appears here.'
  /** @type {string[]} */
  let operations
  try {
    operations = parse(query).definitions.flatMap((definition) =>
      definition.kind === 'OperationDefinition'
        ? [[definition.operation, definition.name?.value].filter(Boolean).join(' ')]
        : [],
    )
  } catch {
    return 'The text has a syntax error. If you run it, the answer says where.'
  }
  const [operation = '', another] = operations
  if (!operation) return 'The text has no operation to run.'
  if (operation.startsWith('subscription')) return 'This service has no subscriptions.'
  const needs = hasKey ? '' : 'To run an operation, first add your API key at the top right. '
  if (another) return `${needs}The button asks which of the ${operations.length} operations to send.`
  const changes = operation.startsWith('mutation') ? ' A mutation changes data of this service.' : ''
  return `${needs}Run sends the ${operation} to ${server()}/graphql. The answer appears here.${changes}`
}

/** Returns what tells the outcome of a query that the open tab sends. @type {(query: string) => (text: string) => void} */
let outcomeOf = () => () => {}

/** Says above the answer what Run will do, and then what it did, until the reader changes the query. */
function RunStatus() {
  const { tabs, activeTabIndex } = useEditorContext({ nonNull: true })
  const [query] = useOperationsEditorState()
  const [headers] = useHeadersEditorState()
  const [hasKey, setHasKey] = useState(Boolean(key))
  const [outcomes, setOutcomes] = useState(/** @type {Record<string, { query: string, text: string }>} */ ({}))
  useEffect(() => {
    const watching = new MutationObserver(() => setHasKey(Boolean(key)))
    watching.observe(root, { attributeFilter: ['class'] })
    return () => watching.disconnect()
  }, [])
  const tab = tabs[activeTabIndex]?.id ?? ''
  outcomeOf = (query) => (text) => setOutcomes((known) => ({ ...known, [tab]: { query, text } }))
  const outcome = outcomes[tab]?.query === query ? outcomes[tab].text : ''
  return createElement(
    'div',
    { className: 'run-status' },
    createElement('p', { role: 'status' }, outcome),
    outcome ? null : createElement('p', null, whatRunDoes(query, hasKey || hasOwnKey(headers))),
  )
}

/** The published schema: reading it needs no key. */
async function loadSchema() {
  const response = await fetch(`${byId('content').dataset.base}/schema.graphql`)
  if (!response.ok) throw new Error(`The schema could not be loaded: the service returned ${response.status}.`)
  return buildSchema(await response.text())
}

async function start() {
  const schema = await loadSchema()
  const container = createRoot(byId('graphiql'))
  const defaultTabs = exampleTabs()
  const dark = matchMedia('(prefers-color-scheme: dark)')
  // Variables and headers: a phone has no room for them until they are opened.
  const isWide = matchMedia('(width >= 48rem)').matches
  const render = () => {
    const { theme } = root.dataset
    const forcedTheme = theme === 'light' || (theme !== 'dark' && !dark.matches) ? 'light' : 'dark'
    container.render(
      createElement(
        GraphiQL,
        {
          schema,
          fetcher,
          defaultTabs,
          forcedTheme,
          shouldPersistHeaders: false,
          defaultEditorToolsVisibility: isWide,
        },
        createElement(GraphiQL.Footer, null, createElement(RunStatus)),
      ),
    )
  }
  dark.addEventListener('change', render)
  new MutationObserver(render).observe(root, { attributeFilter: ['data-theme'] })
  render()
  byId('state').remove()
}

start().catch((error) => {
  byId('state').textContent = `${error.message} Reload the page to try again.`
})
