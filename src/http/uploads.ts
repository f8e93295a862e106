import { ApiError } from '../../schema/errors.js'

/** What all bodies that are arriving may take together, in bytes. */
export const UPLOAD_ROOM = 67_108_864
/** A body counts as at least this many bytes, so that the room also bounds how many there are. */
const LEAST_BYTES = 32_768

/** A body that is arriving. */
export interface Upload {
  /** Who sends it: an address, and a key of this address. */
  readonly address: string
  readonly holder: string
  bytes: number
  /** Ends it with an error. */
  refuse(error: ApiError): void
}

/** One object for all, because creating an error costs more than refusing a request. */
const refused = new ApiError(
  'unavailable',
  'The service receives more bodies than it has room for. This request was not processed and cost nothing. Send its body faster, or retry after the seconds in Retry-After.',
  { 'retry-after': '1', connection: 'close' },
)

/** The values of the group that holds most. */
function largest(uploads: Upload[], groupOf: (upload: Upload) => string): Upload[] {
  const groups = new Map<string, { bytes: number; uploads: Upload[] }>()
  for (const upload of uploads) {
    const group = groups.get(groupOf(upload)) ?? { bytes: 0, uploads: [] }
    groups.set(groupOf(upload), group)
    group.bytes += upload.bytes
    group.uploads.push(upload)
  }
  return [...groups.values()].reduce((a, b) => (b.bytes > a.bytes ? b : a)).uploads
}

/**
 * Bounds the bodies that arrive at the same time. If there is no room for another one, the address that holds most, and of
 * its keys the one that holds most, loses the body that has taken longest: slow bodies cannot shut out others.
 */
export class Uploads {
  readonly #room: number
  /** In the order in which they began. */
  readonly #uploads = new Set<Upload>()
  #bytes = 0
  #refused = 0

  constructor(room = UPLOAD_ROOM) {
    this.#room = room
  }

  get figures() {
    return { inside: this.#uploads.size, refused: this.#refused }
  }

  /** A body arrives, and will take so many bytes at least. May be called again with more. */
  take(upload: Upload, bytes: number): void {
    const more = Math.max(LEAST_BYTES, bytes) - (this.#uploads.has(upload) ? upload.bytes : 0)
    this.#uploads.add(upload)
    upload.bytes += more
    this.#bytes += more
    while (this.#bytes > this.#room) {
      const [slowest] = largest(
        largest([...this.#uploads], ({ address }) => address),
        ({ holder }) => holder,
      )
      if (!slowest) return
      this.end(slowest)
      this.#refused++
      slowest.refuse(refused)
    }
  }

  /** Must be called when a body has arrived, or will not. */
  end(upload: Upload): void {
    if (this.#uploads.delete(upload)) this.#bytes -= upload.bytes
  }
}
