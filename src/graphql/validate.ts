import { GraphQLError, specifiedRules, validate } from 'graphql'
import type { Selections } from '../execute/selections.js'

/** The most errors in a response. Each may cost a search for what the client could have meant. */
const MAX_ERRORS = 10

export interface Validation {
  errors: readonly GraphQLError[]
  /** Selections of a valid document with its fragments expanded: what a plan of its execution can hold at most. */
  expanded: number
}

/** Validates a document that is within the limits. */
export function validateDocument(selections: Selections): Validation {
  const { schema, document } = selections
  const errors = validate(schema, document, specifiedRules, { maxErrors: MAX_ERRORS })
  if (errors.length > 0) return { errors, expanded: 0 }
  try {
    return { errors, expanded: selections.count() }
  } catch (error) {
    if (!(error instanceof GraphQLError)) throw error
    return { errors: [error], expanded: 0 }
  }
}
