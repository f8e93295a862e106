import { getNamedType, isInputObjectType } from 'graphql'
import { operations } from '../../../schema/index.js'
import { MAX_INT } from '../../../schema/kit/input/rules.js'
import { rulesOf } from '../../../schema/kit/input/values.js'
import { bounds } from '../../../src/gateway/openapi/schemas.js'

/** The input field that sets a column of a model. */
function inputOf(model: string, column: string) {
  for (const { field, body } of operations) {
    const input = body && getNamedType(body.type)
    const found = isInputObjectType(input) ? input.getFields()[column] : undefined
    if (found && getNamedType(field.type).extensions.pothosPrismaModel === model) return found
  }
}

/**
 * Check constraints that keep out of a column what the inputs that set it refuse: its bounds, and white space at the ends of a
 * text that is stored trimmed. Patterns are not among them, because PostgreSQL reads them differently.
 *
 * @param stored its name in the database
 * @returns names, which admins read as the reason of a refusal, and conditions
 */
export function checksOf(model: string, column: string, stored: string): [name: string, condition: string][] {
  const input = inputOf(model, column)
  if (!input) return []
  const { minLength, maxLength, minimum, maximum } = bounds(input)
  const checks: [string, string][] = []
  if (maxLength !== undefined) {
    const [range, test] = minLength ? [`${minLength} to`, `BETWEEN ${minLength} AND`] : ['at most', '<=']
    checks.push([
      `${stored} must have ${range} ${maxLength} characters`,
      `char_length("${stored}") ${test} ${maxLength}`,
    ])
  }
  // The type of the column has the greatest Int as its bound.
  if (minimum !== undefined && maximum === MAX_INT)
    checks.push([`${stored} must be at least ${minimum}`, `"${stored}" >= ${minimum}`])
  else if (minimum !== undefined && maximum !== undefined)
    checks.push([`${stored} must be from ${minimum} to ${maximum}`, `"${stored}" BETWEEN ${minimum} AND ${maximum}`])
  if (rulesOf(input).some((rule) => rule.safeParse(' x ').data === 'x'))
    checks.push([`${stored} must not begin or end with white space`, `"${stored}" = "trimmed"("${stored}")`])
  return checks
}
