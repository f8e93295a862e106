import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { printSchema } from 'graphql'
import { schema } from '../../schema/index.js'
import { createOpenApi, PUBLISHED_DEFAULTS, toYaml } from '../gateway/openapi/index.js'
import { settings } from '../settings.js'

// `npm run contract`: writes the contract of both surfaces into a folder. The committed files are what API reviews read
// and what CI compares with, so they show the default settings and no address of a machine.

const folder = process.argv[2] ?? '.'
const openapi = createOpenApi({ ...PUBLISHED_DEFAULTS, sunset: settings.shape.PET_BY_ID_SUNSET.parse(undefined) })
await writeFile(join(folder, 'openapi.yaml'), toYaml(openapi))
await writeFile(join(folder, 'schema.graphql'), `${printSchema(schema)}\n`)
