import { Prisma, type PrismaClient } from '../../prisma/generated/client/client.js'

// Single reads that arrive together share one query. Collect, then ask: a read may share a query that begins after the
// read has arrived, never one that is already running. Otherwise a client could miss its own last write.

type Row = Record<string, unknown>

interface Delegate {
  findUnique(args: object): Promise<Row | null>
  findUniqueOrThrow(args: object): Promise<Row>
  findMany(args: object): Promise<Row[]>
}

interface FindUnique {
  where: Record<string, unknown>
  select?: Record<string, unknown>
  include?: object
}

interface Batch {
  rows: Promise<Map<unknown, Row>>
  ids: Set<unknown>
}

/** The largest batch. It bounds what one slow query can delay. */
const MAX_BATCH = 100

const bigintAsText = (_key: string, value: unknown) => (typeof value === 'bigint' ? `${value}n` : value)

/** A model's `findUnique` by one column, gathered: all that is asked in one turn of the event loop is one query. */
function gather(delegate: Delegate) {
  const open = new Map<string, Batch>()

  function begin(shape: string, column: string, args: Omit<FindUnique, 'where'>): Batch {
    const ids = new Set<unknown>()
    const select = args.select && { ...args.select, [column]: true }
    const rows = new Promise<void>((resolve) => setImmediate(resolve)).then(async () => {
      if (open.get(shape) === batch) open.delete(shape)
      const [first] = ids
      const found =
        ids.size === 1
          ? [await delegate.findUnique({ where: { [column]: first }, ...args })]
          : await delegate.findMany({ where: { [column]: { in: [...ids] } }, ...args, ...(select && { select }) })
      return new Map(found.flatMap((row) => (row ? [[ids.size === 1 ? first : row[column], row] as const] : [])))
    })
    const batch = { rows, ids }
    open.set(shape, batch)
    return batch
  }

  function findUnique(args: FindUnique): Promise<Row | null> {
    const { where, ...rest } = args
    const [[column, id] = ['', undefined], ...others] = Object.entries(where)
    if (others.length > 0 || id === null || typeof id === 'object') return delegate.findUnique(args)
    const shape = column + JSON.stringify(rest, bigintAsText)
    const waiting = open.get(shape)
    const batch = waiting && waiting.ids.size < MAX_BATCH ? waiting : begin(shape, column, rest)
    batch.ids.add(id)
    return batch.rows.then((rows) => rows.get(id) ?? null)
  }

  return {
    findUnique,
    // A missing row is read again alone, so that the error is Prisma's own.
    findUniqueOrThrow: async (args: FindUnique) => (await findUnique(args)) ?? delegate.findUniqueOrThrow(args),
  }
}

/** `target` with some of its properties replaced. */
const override = <T extends object>(target: T, replaced: object): T =>
  new Proxy(target, {
    get: (_, name) => Reflect.get(Object.hasOwn(replaced, name) ? replaced : target, name),
  })

/**
 * A client whose `findUnique` and `findUniqueOrThrow` are gathered. They return plain promises. Everything else is the
 * client's own; so a read inside of a transaction stays inside.
 */
export function gatherReads(prisma: PrismaClient): PrismaClient {
  const models = Object.keys(Prisma.ModelName).map((model) => {
    const name = (model.charAt(0).toLowerCase() + model.slice(1)) as 'pet'
    return [name, override(prisma[name], gather(prisma[name] as unknown as Delegate))]
  })
  return override(prisma, Object.fromEntries(models))
}
