import pg from 'pg'

const { builtins, getTypeParser } = pg.types

/** A moment without a time zone is in UTC, for Prisma. */
const utc = (text: string) => new Date(text.length > 10 ? `${text}Z` : text)

const parsers: { [oid: number]: (text: string) => unknown } = {
  [builtins.INT8]: BigInt,
  [builtins.DATE]: utc,
  [builtins.TIMESTAMP]: utc,
}

export const parserOf = (oid: number) => parsers[oid] ?? getTypeParser(oid, 'text')

/** Values of own statements, as Prisma would return them. */
export const valuesOfPrisma: pg.CustomTypesConfig = { getTypeParser: parserOf as never }
