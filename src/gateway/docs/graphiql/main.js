// @ts-check
// GraphiQL with the schema, examples, key and theme of this service. shared.js, which is loaded before it, declares what is
// neither imported nor declared here.

import { GraphiQL } from 'graphiql'
import { buildSchema, parse } from 'graphql'
import { createElement } from 'react'
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
  const ownKey = Object.keys(headers).some((name) => /^(authorization|x-api-key)$/i.test(name))
  if (!key && !ownKey) {
    askForKey()
    return failure('Nothing was sent. Add your API key (at the top right), then run the operation again.')
  }
  let answer
  try {
    const accept = 'application/graphql-response+json, application/json;q=0.9'
    answer = await send(`${server()}/graphql`, {
      method: 'POST',
      headers: { Accept: accept, 'Content-Type': 'application/json', ...headers },
      body: JSON.stringify(withoutForeignName(parameters)),
    })
  } catch (error) {
    return failure(
      error instanceof DOMException && error.name === 'TimeoutError'
        ? 'No answer within 30 seconds.'
        : `No answer: ${server()} cannot be reached from this page, or a header has a character that HTTP does not allow.`,
    )
  }
  const { response, text } = answer
  if (!ownKey) {
    if (response.status === 401) askForKey()
    checkKey()
  }
  return JSON.parse(text)
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
      createElement(GraphiQL, {
        schema,
        fetcher,
        defaultTabs,
        forcedTheme,
        shouldPersistHeaders: false,
        defaultEditorToolsVisibility: isWide,
      }),
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
