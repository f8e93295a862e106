/** Where a round goes. */
export interface Target {
  /** The address of the gateway, for a client that does not know it from the document. */
  url: string
  key: string
  /** A key that may send one request a minute. */
  limitedKey: string
}

interface Refusal {
  status: number
  code: string | undefined
}

/** What a client saw of its round. */
export interface Report {
  category: { id: number; name: string }
  /** As created: the first is ordered, and has the stock. */
  petIds: number[]
  order: { id?: number; petId?: number; quantity?: number; complete?: boolean }
  stock: number
  /** The ids of the category's pets, page by page. */
  pages: number[][]
  /** The ids of the last two pets, asked for by id. */
  found: number[]
  /** The category and the stock of each of these. */
  related: (string | number | undefined)[][]
  missing: Refusal
  /** A change of the stock, on condition of an ETag that it never had. */
  stale: Refusal
  unknown: Refusal
  limited: Refusal & { retryAfter: string | null }
}

/** An id that no resource has. */
export const unusedId = Number.MAX_SAFE_INTEGER

/** An ETag that no resource has. */
export const unusedEtag = '"unused"'

/** The data of an answer, which must be a success. */
export function given<Data>({ data, ...answer }: { data?: Data }): NonNullable<Data> {
  if (data === undefined || data === null) throw new Error(JSON.stringify(answer))
  return data
}

/** Follows a list to its end: the ids of each page. */
export async function pagesOf(load: (after?: number) => Promise<{ ids: number[]; more: boolean }>) {
  const pages: number[][] = []
  for (let more = true; more; ) {
    const page = await load(pages.at(-1)?.at(-1))
    pages.push(page.ids)
    more = page.more
  }
  return pages
}
