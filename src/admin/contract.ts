import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { printSchema } from 'graphql'
import { schema } from '../../schema/index.js'
import { WRITTEN } from '../openapi/guides.js'
import { createOpenApi, toYaml } from '../openapi/index.js'
import { settings } from '../settings.js'

// Writes the contract of both surfaces into a folder. What is committed is what an API review reads, and CI compares;
// so it names no machine, and the settings that it shows are the defaults.

const folder = process.argv[2] ?? '.'
const openapi = createOpenApi({
  ...WRITTEN,
  sunset: settings.shape.PET_BY_ID_SUNSET.parse(undefined),
})
await writeFile(join(folder, 'openapi.yaml'), toYaml(openapi))
await writeFile(join(folder, 'schema.graphql'), `${printSchema(schema)}\n`)
