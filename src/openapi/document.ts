// As much of OpenAPI 3.0.3 as the document uses.

export interface Schema {
  $ref?: string
  allOf?: Schema[]
  type?: string
  format?: string
  description?: string
  required?: string[]
  properties?: Record<string, Schema>
  additionalProperties?: boolean
  items?: Schema
  enum?: unknown[]
  default?: unknown
  example?: unknown
  nullable?: boolean
  minimum?: number
  maximum?: number
  minLength?: number
  maxLength?: number
  pattern?: string
  minItems?: number
  maxItems?: number
  [extension: `x-${string}`]: unknown
}

export interface Reference {
  $ref: string
}

export interface Header {
  description: string
  required?: boolean
  schema: Schema
  example: unknown
}

interface MediaType {
  schema: Schema
  example?: unknown
  examples?: Record<string, { summary: string; value: unknown }>
}

export interface ResponseObject {
  description: string
  headers: Record<string, Header | Reference>
  content?: Record<string, MediaType>
}

export interface Parameter {
  name: string
  in: 'path' | 'query'
  description?: string
  required: boolean
  style?: 'form'
  explode?: boolean
  schema: Schema
  example: unknown
}

export interface OperationObject {
  operationId: string
  summary: string
  description: string
  tags: string[]
  deprecated?: true
  parameters?: Parameter[]
  requestBody?: { description?: string; required: true; content: Record<string, MediaType> }
  responses: Record<string, ResponseObject | Reference>
  [extension: `x-${string}`]: unknown
}

export interface OpenApiDocument {
  openapi: '3.0.3'
  info: { title: string; version: string; description: string; [field: string]: unknown }
  servers: { url: string; 'x-internal': boolean }[]
  security: Record<string, string[]>[]
  tags: { name: string; description: string }[]
  'x-tagGroups': { name: string; tags: string[] }[]
  externalDocs: { description: string; url: string }
  paths: Record<string, Record<string, OperationObject>>
  components: {
    securitySchemes: Record<string, object>
    schemas: Record<string, Schema>
    headers: Record<string, Header>
    responses: Record<string, ResponseObject>
  }
}

export const schemaRef = (name: string): Schema => ({ $ref: `#/components/schemas/${name}` })
