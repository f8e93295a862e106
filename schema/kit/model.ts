import { getDatamodel } from '../../prisma/generated/pothos.js'

/** Prisma's models, by name. */
export const { models } = getDatamodel().datamodel

export function columnOf(model: string, name: string) {
  const { fields } = models[model] ?? {}
  if (!fields) throw new Error(`prisma/schema.prisma has no model ${model}; it has ${Object.keys(models).join(', ')}`)
  const column = fields.find((field) => field.name === name)
  if (!column) throw new Error(`${model} has no column ${name}`)
  return column
}

/** The column that is the id of a model. */
export function keyOf(model: string) {
  const key = models[model]?.fields.find(({ isId }) => isId)
  if (!key) throw new Error(`${model} has no column that is its id`)
  return key
}
