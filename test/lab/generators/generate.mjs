// node generate.mjs <client> <address>: writes a client of the gateway at that address into generated/.

import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { parse } from 'graphql'

const folder = `${import.meta.dirname}/generated`
const [, , client = '', address] = process.argv

/** @type {Record<string, () => Promise<unknown>>} */
const generators = {
  async 'openapi-fetch'() {
    const { astToString, default: openapiTS } = await import('openapi-typescript')
    const types = await openapiTS(new URL(`${address}/openapi.json`))
    await writeFile(`${folder}/openapi-fetch.ts`, astToString(types))
  },

  async 'hey-api'() {
    const { createClient } = await import('@hey-api/openapi-ts')
    await createClient({
      input: `${address}/openapi.json`,
      output: `${folder}/hey-api`,
      plugins: ['@hey-api/typescript', '@hey-api/sdk', '@hey-api/client-fetch'],
      logs: { level: 'silent', file: false },
    })
  },

  async orval() {
    const { generate } = await import('orval')
    await generate({
      input: `${address}/openapi.json`,
      output: { target: `${folder}/orval.ts`, client: 'fetch', baseUrl: { getBaseUrlFromSpecification: true } },
    })
  },

  async 'swagger-typescript-api'() {
    const { generateApi } = await import('swagger-typescript-api')
    await generateApi({
      url: `${address}/openapi.json`,
      output: folder,
      fileName: 'swagger-typescript-api.ts',
      silent: true,
    })
  },

  async oazapfts() {
    const { generateSource } = await import('oazapfts')
    await writeFile(`${folder}/oazapfts.ts`, await generateSource(`${address}/openapi.json`))
  },

  async 'rtk-query'() {
    const { generateEndpoints } = await import('@rtk-query/codegen-openapi')
    await generateEndpoints({
      schemaFile: `${address}/openapi.json`,
      apiFile: `${import.meta.dirname}/rtk-query.base.ts`,
      apiImport: 'base',
      exportName: 'petstore',
      outputFile: `${folder}/rtk-query.ts`,
      esmExtensions: true,
    })
  },

  async kubb() {
    const { build, defineConfig } = await import('@kubb/core')
    const { pluginClient } = await import('@kubb/plugin-client')
    const { pluginOas } = await import('@kubb/plugin-oas')
    const { pluginTs } = await import('@kubb/plugin-ts')
    const { error } = await build({
      config: defineConfig({
        input: { path: `${address}/openapi.json` },
        output: { path: `${folder}/kubb`, extension: { '.ts': '.js' } },
        plugins: [pluginOas(), pluginTs(), pluginClient()],
      }),
    })
    if (error) throw error
  },

  async graphql() {
    // The types of the operations hold all that they need of the schema's.
    const { codegen } = await import('@graphql-codegen/core')
    const schema = await (await fetch(`${address}/schema.graphql`)).text()
    const documents = await readFile(`${import.meta.dirname}/round.graphql`, 'utf8')
    const source = await codegen({
      filename: `${folder}/graphql.ts`,
      schema: parse(schema),
      documents: [{ document: parse(documents) }],
      config: {
        strictScalars: true,
        scalars: { Int64: 'number', DateTime: 'string' },
        useTypeImports: true,
        documentMode: 'string',
      },
      plugins: [{ operations: {} }, { documents: {} }],
      pluginMap: {
        operations: await import('@graphql-codegen/typescript-operations'),
        documents: await import('@graphql-codegen/typed-document-node'),
      },
    })
    await writeFile(`${folder}/graphql.ts`, source)
  },
}

await mkdir(folder, { recursive: true })
await generators[client]?.()
