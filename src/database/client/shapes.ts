import { createHash } from 'node:crypto'
import type { Lane, Lanes } from './lanes.js'
import { isRead, laneOf, rowIndexOf } from './statement.js'

/** PostgreSQL keeps a named statement until its connection closes. Lists of ids make a statement for each length. */
const MAX_KEPT = 1_000

/** What a pool knows of a statement by its text. */
export interface Shape {
  /** As it is sent. */
  text: string
  /** Undefined if it is not prepared. */
  hash: string | undefined
  lane: Lane
  isRead: boolean
  rowIndex: number | undefined
}

interface ShapesOptions {
  lanes: Lanes
  /** In the one session of the embedded database, and in those of a pooler, names would collide. */
  areNamed: boolean
  textOf: (sql: string) => string
}

/** The shapes of statements, and the names under which connections prepare them. */
export class Shapes {
  readonly #options: ShapesOptions
  readonly #kept = new Map<string, Shape>()
  /** A part of all names. */
  #generation = 0

  constructor(options: ShapesOptions) {
    this.#options = options
  }

  of(sql: string): Shape {
    let shape = this.#kept.get(sql)
    if (!shape) {
      const { lanes, areNamed, textOf } = this.#options
      const isKept = this.#kept.size < MAX_KEPT
      const hash = areNamed && isKept ? createHash('sha256').update(sql).digest('hex').slice(0, 32) : undefined
      shape = { text: textOf(sql), hash, lane: lanes.get(laneOf(sql)), isRead: isRead(sql), rowIndex: rowIndexOf(sql) }
      if (isKept) this.#kept.set(sql, shape)
    }
    return shape
  }

  /** The text as it is sent; keeps nothing. */
  textOf(sql: string): string {
    return this.#kept.get(sql)?.text ?? this.#options.textOf(sql)
  }

  nameOf(sql: string): string | undefined {
    const { hash } = this.of(sql)
    return hash && `${hash}.${this.#generation}`
  }

  /** Called if a statement cannot be used anymore: every connection prepares its statements again, under new names. */
  renew(outdated: string | undefined): void {
    if (outdated?.endsWith(`.${this.#generation}`)) this.#generation++
  }
}
