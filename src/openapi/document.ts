import type { OpenAPIV3 } from 'openapi-types'

// The part of OpenAPI 3.0.3 that the document uses.

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

export const schemaRef = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
