// node --import tsx guide.mjs <folder>: generates what the files of the GraphQL guide need, as the command lines of the generators do.

import { execFileSync } from 'node:child_process'
import { mkdir, readFile, writeFile } from 'node:fs/promises'
import { dirname, resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'
import { transformAsync } from '@babel/core'
import { preset } from '@graphql-codegen/client-preset'
import { codegen } from '@graphql-codegen/core'
import { buildSchema, parse } from 'graphql'

const folder = resolve(process.argv[2] ?? '')
/** @param {string} path */
const read = (path) => readFile(`${folder}/${path}`, 'utf8')
/** @param {string} path @param {string} text */
async function write(path, text) {
  await mkdir(dirname(`${folder}/${path}`), { recursive: true })
  await writeFile(`${folder}/${path}`, text)
}

// GraphQL Code Generator
const { schema, documents, generates } = (await import(pathToFileURL(`${folder}/codegen.ts`).href)).default
const sdl = await read(schema)
const source = await read(documents)
const tagged = [...source.matchAll(/graphql\(`([^`]*)`\)/g)].map(([, text = '']) => ({
  location: documents,
  document: parse(text),
  rawSDL: text,
}))
for (const [output, { config }] of Object.entries(generates)) {
  const files = await preset.buildGeneratesSection({
    baseOutputDir: output,
    schema: parse(sdl),
    schemaAst: buildSchema(sdl),
    documents: tagged,
    config,
    presetConfig: {},
    plugins: [],
    pluginMap: {},
    pluginContext: {},
  })
  for (const file of files) await write(file.filename, await codegen(file))
}

// Relay: its compiler, and its Babel plugin
const compiler = fileURLToPath(import.meta.resolve('relay-compiler/cli.js'))
execFileSync(process.execPath, [compiler], { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
for (const file of ['src/PetList.jsx', 'src/Category.jsx']) {
  const relay = await transformAsync(await read(file), {
    configFile: false,
    plugins: [['relay', { eagerEsModules: true }]],
    parserOpts: { plugins: ['jsx'] },
    filename: `${folder}/${file}`,
    cwd: folder,
  })
  await write(file, relay?.code ?? '')
}
