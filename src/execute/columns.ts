/** Values as JSON; and by index those that could not be written, with why. */
export interface Column {
  texts: string[]
  failed: Map<number, unknown> | undefined
}

export const createColumn = (count: number): Column => ({ texts: new Array(count).fill('null'), failed: undefined })

export function fail(column: Column, index: number, error: unknown): void {
  column.failed ??= new Map()
  if (!column.failed.has(index)) column.failed.set(index, error)
  column.texts[index] = 'null'
}

export function failedColumn(count: number, error: unknown): Column {
  const column = createColumn(count)
  for (let i = 0; i < count; i++) fail(column, i, error)
  return column
}

/** Puts a column of some of the values into that of all. */
export function put(column: Column, { texts, failed }: Column, indexes: readonly number[]): void {
  for (const [k, i] of indexes.entries()) column.texts[i] = texts[k] as string
  for (const [k, error] of failed ?? []) fail(column, indexes[k] as number, error)
}
