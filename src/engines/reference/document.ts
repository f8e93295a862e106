import type { OpenAPIV3 } from 'openapi-types'

// The part of an OpenAPI 3.0.3 document that the reference shows.

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

export interface Parameter {
  name: string
  in: string
  description?: string
  required?: boolean
  schema: Schema
  example?: unknown
}

export interface ResponseObject {
  description: string
  headers: Record<string, Header | OpenAPIV3.ReferenceObject>
  content?: Record<
    string,
    { schema: Schema; example?: unknown; examples?: Record<string, { summary?: string; value: unknown }> }
  >
}

export interface OperationObject {
  operationId: string
  summary: string
  description: string
  tags: string[]
  deprecated?: boolean
  parameters?: (Parameter | OpenAPIV3.ReferenceObject)[]
  requestBody?: { description?: string; content: Record<string, { schema?: Schema; example?: unknown }> }
  responses: Record<string, ResponseObject | OpenAPIV3.ReferenceObject>
  'x-codeSamples': { lang: string; label: string; source: string }[]
  /** The date of its end. */
  'x-deprecated-sunset'?: string
  'x-stability'?: string
  /** Why readers cannot try it. */
  'x-no-try-it-reason'?: string
}

export interface OpenApiDocument {
  info: { title: string; version: string }
  servers: { url: string }[]
  tags: { name: string; description: string }[]
  paths: Record<string, Record<string, OperationObject>>
  components: { schemas: Record<string, Schema>; headers: Record<string, Header> }
}
