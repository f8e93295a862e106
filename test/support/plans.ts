import { type ListRead, MAX_TOTAL, type Model } from '../../schema/kit/context.js'
import type { ListQuery } from '../../schema/kit/lists/plan.js'
import { createStatements } from '../../src/engines/postgres/read-statements.js'
import type { Database } from '../../src/gateway/database/index.js'
import { sql } from './sql.js'

// What PostgreSQL reads for a question: how many rows it looks at, by which indexes. It depends on no clock.

interface Node {
  'Node Type': string
  'Index Name'?: string
  'Actual Rows': number
  'Actual Loops': number
  'Rows Removed by Filter'?: number
  'Rows Removed by Index Recheck'?: number
  'Index Cond'?: string
  'Workers Planned'?: number
  'Shared Hit Blocks'?: number
  'Shared Read Blocks'?: number
  Plans?: Node[]
}

export interface Reading {
  /** By their names; of a scan by something else, its kind. */
  indexes: string[]
  /** All that its scans have found, whether it was returned or not. */
  rows: number
  /**
   * The blocks that it has looked at and need not: a scan that does not end at its bound goes on through the index, and finds
   * nothing there. For each row there may be one of the index and one of the table.
   */
  idleBlocks: number
  /** Parallel workers: starting them takes longer than reading any page. */
  workers: number
}

/** The way down an index, and what is beside it. */
const BLOCKS_OF_A_SCAN = 8

const nodesOf = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(nodesOf)]
const isScan = ({ 'Node Type': type }: Node) => type.includes('Scan') && !/^(Subquery|Values|Function) Scan/.test(type)

const textOf = (value: unknown): string => {
  if (Array.isArray(value))
    return `{${value.map((item) => (item === null ? 'NULL' : `"${textOf(item).replaceAll(/["\\]/g, '\\$&')}"`))}}`
  return value instanceof Date ? value.toISOString() : String(value)
}
const literal = (value: unknown) => (value === null ? 'NULL' : `'${textOf(value).replaceAll("'", "''")}'`)

/** So that PostgreSQL plans parallel workers with few rows, too, as it does with a million. */
const CHEAP_WORKERS = [
  'parallel_setup_cost',
  'parallel_tuple_cost',
  'min_parallel_index_scan_size',
  'min_parallel_table_scan_size',
]
  .map((setting) => `SET LOCAL ${setting} = 0;`)
  .join(' ')

type Mode = 'force_generic_plan' | 'force_custom_plan'

let prepared = 0

/** Reads by a statement, as the gateway's connections do or with a plan for its values. */
export async function reading(
  { transaction }: Pick<Database, 'transaction'>,
  text: string,
  values: readonly unknown[],
  mode: Mode = 'force_generic_plan',
): Promise<Reading> {
  // To prepare is no part of the transaction: after an error the name is taken.
  const name = `question_${++prepared}`
  // One statement does it all, because round trips would take most of the time. The first time, functions are parsed.
  const explain = `DO $do$ DECLARE plan json; BEGIN
    SET LOCAL plan_cache_mode = ${mode};
    ${CHEAP_WORKERS}
    EXECUTE $sql$PREPARE ${name} AS ${text}$sql$;
    FOR i IN 1..2 LOOP
      EXECUTE $sql$EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, FORMAT JSON) EXECUTE ${name} (${values.map(literal)})$sql$ INTO plan;
    END LOOP;
    DEALLOCATE ${name};
    PERFORM set_config('test.plan', plan::text, true);
  END $do$`
  const [explained] = await transaction(async (query) => {
    await query(sql(explain), [])
    return query(sql(`SELECT current_setting('test.plan') AS plan`), [])
  })
  const [{ Plan: plan }] = JSON.parse(String(explained?.plan)) as [{ Plan: Node }]
  const nodes = nodesOf(plan)
  const scans = nodes.filter(isScan)
  const found = (node: Node) =>
    node['Actual Rows'] + (node['Rows Removed by Filter'] ?? 0) + (node['Rows Removed by Index Recheck'] ?? 0)
  // Rows are an average over the loops, which some versions round.
  const rows = scans.reduce((sum, node) => sum + found(node) * node['Actual Loops'], 0)
  const scanned = scans.reduce((sum, node) => sum + node['Actual Loops'], 0)
  const blocks = (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
  return {
    indexes: scans.map((node) => (node['Index Cond'] ? (node['Index Name'] ?? '') : node['Node Type'])),
    rows,
    workers: nodes.reduce((sum, node) => sum + (node['Workers Planned'] ?? 0), 0),
    idleBlocks: Math.max(0, blocks - 2 * rows - BLOCKS_OF_A_SCAN * scanned),
  }
}

/**
 * How many rows are looked at for one that a page returns: one for each value of a column that the question lacks, such as three
 * statuses, and a second one where it is looked up by the id of its owner.
 */
export function rowsForOne(
  { tables: { columnOf, valuesOf } }: Pick<Database, 'tables'>,
  model: Model,
  { conditions, within = [], byOwner }: ListRead,
): number {
  const apart = within.filter((column) => !conditions.some(([name]) => name === column))
  return apart.reduce((rows, column) => rows * valuesOf(columnOf(model, column)).length, byOwner ? 2 : 1)
}

/** The statement of a page, or of the pages after several places, and its parameters. */
export function pageOf(
  { tables }: Pick<Database, 'tables'>,
  model: Model,
  question: ListQuery,
  limit: number,
  after?: readonly unknown[],
): [sql: string, values: unknown[]] {
  const asked = question.rows()
  const { single } = createStatements(tables).page(model, { ...asked, after: after && { values: after } })
  return [single.text, [...asked.conditions.map(([, , value]) => value), ...(after ?? []), limit]]
}

export function totalOf(
  { tables }: Pick<Database, 'tables'>,
  model: Model,
  { counted }: ListQuery,
): [sql: string, values: unknown[]] {
  return [
    createStatements(tables).total(model, counted).text,
    [...counted.conditions.map(([, , value]) => value), MAX_TOTAL + 1],
  ]
}
