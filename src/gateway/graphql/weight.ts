// The arithmetic of prices: what selections weigh, added up and multiplied.

export const SCALARS_PER_WEIGHT = 10

/** What a selection may return. */
export interface Measured {
  /** Scalar fields of each object of the selection. */
  scalars: number
  /** What those of them weigh in addition that are computed, once for each object, by their names. */
  computed: ReadonlyMap<string, number>
  /** Objects below each object, their weight, totals, all fields, and their keys. */
  objects: number
  weight: number
  totals: number
  completed: number
  letters: number
}

export const NOTHING: Measured = {
  scalars: 0,
  computed: new Map(),
  objects: 0,
  weight: 0,
  totals: 0,
  completed: 0,
  letters: 0,
}

export function sum(parts: Measured[]): Measured {
  const all = { ...NOTHING }
  const computed = new Map<string, number>()
  for (const part of parts) {
    all.scalars += part.scalars
    all.objects += part.objects
    all.weight += part.weight
    all.totals += part.totals
    all.completed += part.completed
    all.letters += part.letters
    for (const [name, more] of part.computed) computed.set(name, more)
  }
  if (computed.size > 0) all.computed = computed
  return all
}

/** Of several types that an object may have: each figure is that of the type for which it is the largest. */
export function dearest(parts: Measured[]): Measured {
  const [first = NOTHING] = parts
  if (parts.length < 2) return first
  const max = (figure: (part: Measured) => number) => Math.max(...parts.map(figure))
  return {
    scalars: max(allScalars),
    computed: NOTHING.computed,
    objects: max(({ objects }) => objects),
    weight: max(({ weight }) => weight),
    totals: max(({ totals }) => totals),
    completed: max(({ completed }) => completed),
    letters: max(({ letters }) => letters),
  }
}

/** What the scalar fields of an object weigh, in scalar fields. */
const allScalars = ({ scalars, computed }: Measured) =>
  [...computed.values()].reduce((sum, more) => sum + more, scalars)

/** Objects of which each is measured. */
export function times(size: number, each: Measured): Measured {
  const { objects, weight, totals, completed, letters } = each
  return {
    ...NOTHING,
    objects: size * (1 + objects),
    weight: size * (Math.max(1, Math.ceil(allScalars(each) / SCALARS_PER_WEIGHT)) + weight),
    totals: size * totals,
    completed: size * completed,
    letters: size * letters,
  }
}
