import type { Schema } from '../../engines/reference/index.js'
import type { HeaderOptions } from '../reply/index.js'

// What the document is made from.

export type { Header, ResponseObject, Schema } from '../../engines/reference/index.js'

export interface Options extends Omit<HeaderOptions, 'origins'> {
  /** Where people ask for a key, if the operator has set it. */
  contactUrl?: string
}

/** What SOFA generates, as far as it is kept. */
export interface Generated {
  paths: Record<string, Record<string, { tags: string[]; parameters?: { name: string; in: string; schema: Schema }[] }>>
  components: { schemas: Record<string, Schema> }
}

export const schemaRef = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
