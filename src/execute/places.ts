import { type FieldNode, type GraphQLError, type GraphQLResolveInfo, locatedError, responsePathAsArray } from 'graphql'

export type Path = GraphQLResolveInfo['path']

/** The places of values in the result. Only errors and resolvers need their paths, which are made for them. */
export class Places {
  readonly #make: (index: number) => Path | undefined
  readonly #made = new Map<number, Path | undefined>()

  constructor(make: (index: number) => Path | undefined) {
    this.#make = make
  }

  /** The same object at each call: errors are found by it. */
  at(index: number): Path | undefined {
    if (!this.#made.has(index)) this.#made.set(index, this.#make(index))
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

/** The error with the path of its place, unless it has one of a place below. */
export const located = (error: unknown, nodes: readonly FieldNode[], path: Path | undefined): GraphQLError =>
  locatedError(error, nodes.slice(0, MAX_LOCATIONS), responsePathAsArray(path))
