import { OperationTypeNode } from 'graphql'

/** Limits that a refusal can name, the largest first. Each costs a walk over the document. */
const NAMED_LIMITS = [90, 80, 70, 60, 50, 40, 30, 20, 10, 5, 2, 1]

/** Which `limit` in every list, and how many items in every batch, make an operation fit, as a sentence. */
export function fittingLimit(type: OperationTypeNode, fits: (limit: number) => boolean): string {
  let [first, end] = [0, NAMED_LIMITS.length]
  while (first < end) {
    const middle = (first + end) >> 1
    if (fits(NAMED_LIMITS[middle] as number)) end = middle
    else first = middle + 1
  }
  const limit = NAMED_LIMITS[first]
  if (limit === undefined) return 'It would not fit with any limit of its lists: select fewer fields.'
  return type === OperationTypeNode.MUTATION
    ? `It would fit with at most ${limit} items in every batch and every list.`
    : `It would fit with a limit of ${limit} in every list (in connections: first or last).`
}
