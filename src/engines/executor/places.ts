import { type FieldNode, type GraphQLError, type GraphQLResolveInfo, locatedError, responsePathAsArray } from 'graphql'

export type Path = GraphQLResolveInfo['path']

/** The places of values in the result. Only errors and resolvers need their paths, which are made for them. */
export class Places {
  #made: Map<number, Path | undefined> | undefined

  constructor(private readonly make: (index: number) => Path | undefined) {}

  /** The same object at each call: errors are found by it. */
  at(index: number): Path | undefined {
    this.#made ??= new Map()
    if (!this.#made.has(index)) this.#made.set(index, this.make(index))
    return this.#made.get(index)
  }

  /** The places of a field of each object. */
  below(key: string, typename: string): Places {
    return new Places((i) => ({ prev: this.at(i), key, typename }))
  }

  /** Some of the places. */
  only(indexes: readonly number[]): Places {
    return new Places((i) => this.at(indexes[i] as number))
  }
}

/** Nodes of a document that an error names. */
const MAX_LOCATIONS = 10

/** An error and the place where it happened. Of several errors below one null, one is reported, and needs its path. */
export class ErrorAt {
  private constructor(
    readonly error: unknown,
    readonly nodes: readonly FieldNode[],
    readonly places: Places,
    readonly index: number,
  ) {}

  /** The error itself if it has a place already, which is below. */
  static of(error: unknown, nodes: readonly FieldNode[], places: Places, index: number): ErrorAt {
    return error instanceof ErrorAt ? error : new ErrorAt(error, nodes, places, index)
  }

  get located(): GraphQLError {
    const { error, nodes, places, index } = this
    return locatedError(error, nodes.slice(0, MAX_LOCATIONS), responsePathAsArray(places.at(index)))
  }
}
