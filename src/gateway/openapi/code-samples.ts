import { inspect } from 'node:util'
import { getNamedType } from 'graphql'
import { fill, type Operation } from '../../../schema/kit/operations.js'
import { exampleBody, exampleParams } from './examples.js'

type Call = ReturnType<typeof sampleCall>

/** The call that an operation's samples make: its examples, but of the query neither single rows nor a later page. */
function sampleCall(operation: Operation, baseUrl: string) {
  const { rest } = operation
  const query = new URLSearchParams()
  for (const arg of operation.queryArguments) {
    const { example, subGraphs } = arg.extensions
    if (example !== undefined && !subGraphs && getNamedType(arg.type).name !== 'Int64')
      query.append(arg.name, String(example))
  }
  const path = fill(rest.path, exampleParams(operation))
  return {
    method: rest.method,
    url: `${baseUrl}${path}${query.size > 0 ? `?${query}` : ''}`,
    body: exampleBody(operation),
    hasResult: rest.status !== 204,
  }
}

const indent = (text: string, by: string) => text.replaceAll('\n', `\n${by}`)
const shellQuote = (text: string) => `'${text.replaceAll("'", `'\\''`)}'`

// With --fail-with-body an error's body is printed as well, and the exit code is not 0.
const curl = ({ method, url, body }: Call) =>
  [
    `curl --fail-with-body ${method === 'GET' ? '' : `-X ${method} `}${shellQuote(url)}`,
    '-H "Authorization: Bearer $PETSTORE_KEY"',
    ...(body === undefined ? [] : ['-H "Content-Type: application/json"', `-d ${shellQuote(JSON.stringify(body))}`]),
  ].join(' \\\n  ')

const jsLiteral = (value: unknown) => inspect(value, { compact: false, depth: null })

const javascript = ({ method, url, body, hasResult }: Call) => `\
const response = await fetch(${jsLiteral(url)}, {
${method === 'GET' ? '' : `  method: '${method}',\n`}\
  headers: {
    Authorization: \`Bearer \${process.env.PETSTORE_KEY}\`,
${body === undefined ? '' : "    'Content-Type': 'application/json',\n"}\
  },
${body === undefined ? '' : `  body: JSON.stringify(${indent(jsLiteral(body), '  ')}),\n`}\
})
if (!response.ok) throw new Error(\`\${response.status}: \${await response.text()}\`)
console.log(${hasResult ? 'await response.json()' : 'response.status'})`

/** JSON in Python's syntax: only true, false and null differ. */
const pythonLiteral = (value: unknown) =>
  JSON.stringify(value, null, 4).replace(
    /"(?:[^"\\]|\\.)*"|true|false|null/g,
    (token) => ({ true: 'True', false: 'False', null: 'None' })[token] ?? token,
  )

const python = ({ method, url, body, hasResult }: Call) => `\
import os
import requests

response = requests.${method.toLowerCase()}(
    ${JSON.stringify(url)},
    headers={"Authorization": f"Bearer {os.environ['PETSTORE_KEY']}"},
${body === undefined ? '' : `    json=${indent(pythonLiteral(body), '    ')},\n`}\
    timeout=10,
)
if not response.ok:
    raise SystemExit(f"{response.status_code}: {response.text}")
print(${hasResult ? 'response.json()' : 'response.status_code'})`

/**
 * `x-codeSamples`, as Redoc, Scalar and others read it: how to call the operation at `baseUrl`, in three languages. The key
 * is in the environment, as PETSTORE_KEY.
 */
export function codeSamples(operation: Operation, baseUrl: string) {
  const call = sampleCall(operation, baseUrl)
  return [
    { lang: 'Shell', label: 'curl', source: curl(call) },
    { lang: 'JavaScript', label: 'JavaScript', source: javascript(call) },
    { lang: 'Python', label: 'Python', source: python(call) },
  ]
}
