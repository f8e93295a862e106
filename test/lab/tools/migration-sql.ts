import { MAX_ID } from '../../../schema/kit/input/scalars.js'
import { models } from '../../../schema/kit/model.js'
import type { Tables } from '../../../src/engines/postgres/index.js'
import type { ListIndex } from '../../../src/gateway/database/index.js'
import { checksOf } from './value-checks.js'

// What `npm run migration` writes: Prisma's script, and what Prisma cannot express.

/** A column in which a trigger keeps what a text is compared by. */
export interface TextKey {
  model: string
  column: string
  textKey: string
}

interface Migration {
  title: string
  sql: string
}

/** Text in quotes. Engines that split a script at semicolons do not look inside of them. */
const quoted = (text: string) => {
  const escaped = text.replaceAll("'", "''")
  return /[;\\]/.test(text) ? `E'${escaped.replaceAll('\\', '\\\\').replaceAll(';', '\\073')}'` : `'${escaped}'`
}

const check = (table: string, name: string, condition: string) =>
  `ALTER TABLE "${table}" ADD CONSTRAINT "${name}" CHECK (${condition});`

/** An id is an exact integer in JSON. One that an admin has chosen takes the sequence along. */
function idRules(table: string, id: string): string[] {
  const sequence = `"${table}_${id}_seq"`
  const rules = [
    `ALTER SEQUENCE ${sequence} MAXVALUE ${MAX_ID};`,
    check(table, `${id} must be from 1 to ${MAX_ID}`, `"${id}" BETWEEN 1 AND ${MAX_ID}`),
  ]
  // The function knows this name alone.
  if (id !== 'id') return rules
  return [
    ...rules,
    `CREATE TRIGGER "${table}_id_sequence" AFTER INSERT OR UPDATE OF "id" ON "${table}" FOR EACH ROW
    WHEN (NEW."id" <= 9000000000000000 AND NEW."id" > coalesce(pg_sequence_last_value('${sequence}'), 0))
    EXECUTE FUNCTION "advance_sequence"();`,
  ]
}

const momentRule = (table: string, column: string) =>
  check(
    table,
    `${column} must be in the years 1970 to 9999`,
    `"${column}" >= '1970-01-01T00:00:00Z' AND "${column}" < '10000-01-01T00:00:00Z'`,
  )

function textKeyRules(table: string, column: string, textKey: string): string[] {
  const snake = textKey.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`)
  return [
    `CREATE OR REPLACE FUNCTION "keep_${snake}"() RETURNS trigger LANGUAGE plpgsql AS E'
BEGIN
    NEW."${textKey}" := "plain"(NEW."${column}")\\073
    RETURN NEW\\073
END
';`,
    `CREATE TRIGGER "${table}_${snake}" BEFORE INSERT OR UPDATE OF "${column}", "${textKey}" ON "${table}"
    FOR EACH ROW EXECUTE FUNCTION "keep_${snake}"();`,
  ]
}

/** Fills the key in for the rows that are there, in batches that lock each row for a moment. */
const fill = (
  table: string,
  id: string,
  textKey: string,
) => `-- Runs outside of a transaction: it commits after each batch. The trigger computes the key.
DO E'
DECLARE
    low bigint := 0\\073
    high bigint\\073
BEGIN
    LOOP
        SELECT max("${id}") INTO high FROM (
            SELECT "${id}" FROM "${table}" WHERE "${id}" > low ORDER BY "${id}" LIMIT 5000
        ) next\\073
        EXIT WHEN high IS NULL\\073
        UPDATE "${table}" SET "${textKey}" = '''' WHERE "${id}" > low AND "${id}" <= high AND "${textKey}" = ''''\\073
        COMMIT\\073
        low := high\\073
    END LOOP\\073
END
';
`

/** @throws Error for a change that takes something away, or a moment without a time zone */
function statementsOf(script: string): string[] {
  const statements = script.replace(/^\/\*[\s\S]*?\*\/\s*/, '').split(/\n\n(?=-- )/)
  const taking = statements
    .map((text) => text.replace(/^--.*\n/, '').trim())
    .find((text) => /\b(DROP|RENAME|ALTER COLUMN)\b/.test(text))
  if (taking)
    throw new Error(`migrations only add (CONTRIBUTING.md), and this one would do more; write it by hand: ${taking}`)
  const [, moment] = /"(\w+)" TIMESTAMP\(/.exec(script) ?? []
  if (moment) throw new Error(`${moment} has no time zone: add @db.Timestamptz(3) to it`)
  return statements.map((text) => text.trim()).filter((text) => text && !/empty migration/.test(text))
}

const INDEX = /CREATE (UNIQUE )?INDEX ("[^"]+") ON "([^"]+)"\((.*)\);/

/**
 * The migrations that a script of Prisma needs, with what it cannot express. Indexes of tables that have rows already are built
 * while others write: each is a migration of its own.
 *
 * @param missing the indexes that lists need and no migration has
 * @throws Error for what a migration must not do
 */
export function migrationsFrom(
  title: string,
  script: string,
  missing: readonly ListIndex[],
  textKeys: readonly TextKey[],
  tables: Tables,
): Migration[] {
  const statements = statementsOf(script)
  const created = new Set(statements.flatMap((text) => /CREATE TABLE "([^"]+)"/.exec(text)?.[1] ?? []))
  const [main, later]: [string[], Migration[]] = [[], []]

  function addIndex(table: string, unique: string, name: string, columns: string) {
    const statement = (concurrently: string) =>
      `CREATE ${unique}INDEX ${concurrently}${name} ON "${table}"(${columns});`
    if (created.has(table)) main.push(`-- CreateIndex\n${statement('')}`)
    else
      later.push({
        title: `${title}_${name.replaceAll('"', '').toLowerCase()}`,
        sql: `${statement('CONCURRENTLY ')}\n`,
      })
  }

  const expressed = new Set<ListIndex>()
  for (const statement of statements) {
    const [, unique = '', name = '', table = '', columns = ''] = INDEX.exec(statement) ?? []
    const needed = missing.find(
      (index) => index.table === table && index.columns.join(', ').replaceAll(' COLLATE "C"', '') === columns,
    )
    if (needed) expressed.add(needed)
    if (name) addIndex(table, unique, name, needed?.columns.join(', ') ?? columns)
    else main.push(statement)
  }
  // Prisma has no indexes by expression.
  for (const index of missing)
    if (!expressed.has(index))
      addIndex(index.table, '', `"${index.table}_${index.fields.join('_')}_idx"`, index.columns.join(', '))

  for (const [model, { documentation, fields }] of Object.entries(models)) {
    const table = tables.nameOf(model)
    const isNew = created.has(table)
    const changes = statements.filter((text) => text.includes(`ALTER TABLE "${table}" ADD COLUMN`))
    const added = (column: string) => isNew || changes.some((text) => new RegExp(`ADD COLUMN +"${column}" `).test(text))
    const comments: string[] = []
    const rules: string[] = []
    if (isNew && documentation) comments.push(`COMMENT ON TABLE "${table}" IS ${quoted(documentation)};`)
    for (const { name, kind, type, isId, hasDefaultValue, documentation } of fields) {
      if (kind === 'object') continue
      const { stored } = tables.columnOf(model, name)
      if (!added(stored)) continue
      if (documentation) comments.push(`COMMENT ON COLUMN "${table}"."${stored}" IS ${quoted(documentation)};`)
      if (isId && hasDefaultValue && type === 'BigInt') rules.push(...idRules(table, stored))
      if (type === 'DateTime') rules.push(momentRule(table, stored))
      for (const [rule, condition] of checksOf(model, name, stored)) rules.push(check(table, rule, condition))
    }
    for (const { column, textKey } of textKeys.filter((key) => key.model === model)) {
      if (!added(textKey)) continue
      const { stored } = tables.columnOf(model, column)
      const comment = `The ${stored} in lower case and without accents, by which lists are sorted and searched. The database sets it.`
      comments.push(`COMMENT ON COLUMN "${table}"."${textKey}" IS ${quoted(comment)};`)
      rules.push(...textKeyRules(table, stored, textKey))
      if (!isNew)
        later.unshift({
          title: `${title}_fill_${textKey.toLowerCase()}`,
          sql: fill(table, tables.keyOf(model).stored, textKey),
        })
    }
    if (comments.length > 0) rules.unshift(comments.join('\n'))
    main.push(...rules)
  }
  const first = main.length > 0 ? [{ title, sql: `${main.join('\n\n')}\n` }] : []
  return [...first, ...later]
}
