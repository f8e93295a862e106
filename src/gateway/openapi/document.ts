import type { OpenAPIV3 } from 'openapi-types'
import type { HeaderOptions } from '../reply/headers.js'

// What the document is made from, and the part of OpenAPI 3.0.3 that it uses.

export type Options = Omit<HeaderOptions, 'origins'>

/** A schema or, with `$ref`, a reference to one. */
export interface Schema extends Omit<OpenAPIV3.BaseSchemaObject, 'properties' | 'allOf'> {
  $ref?: string
  allOf?: Schema[]
  type?: string
  properties?: Record<string, Schema>
  items?: Schema
  [extension: `x-${string}`]: unknown
}

export interface Header {
  description: string
  required?: boolean
  schema: Schema
  example: unknown
}

export interface ResponseObject {
  description: string
  headers: Record<string, Header | OpenAPIV3.ReferenceObject>
  content?: Record<string, { schema: Schema; example?: unknown; examples?: Record<string, { value: unknown }> }>
}

/** What SOFA generates, as far as it is kept. */
export interface Generated {
  paths: Record<string, Record<string, { tags: string[]; parameters?: { name: string; in: string; schema: Schema }[] }>>
  components: { schemas: Record<string, Schema> }
}

export const schemaRef = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
