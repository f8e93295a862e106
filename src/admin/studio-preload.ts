// Loaded into the process of Prisma Studio, which sends errors of the database to the browser as JSON. Without this, JSON
// leaves out their messages, and an admin does not see why an edit was refused.

Object.defineProperty(Error.prototype, 'toJSON', {
  // Libraries give their own errors one of their own.
  writable: true,
  value(this: Error) {
    const { name, message, stack: _, ...fields } = this
    return { ...fields, name, message }
  },
})

// Studio opens on the first table that it is told, which is that of the migrations, with a button to insert a row. It has no
// setting for it. Here pets come first, and that table is left out.

const isTable = (row: { name?: unknown; columns?: unknown } | null, name: string) =>
  row?.name === name && Array.isArray(row.columns)

const { json } = Response
Response.json = (data: unknown, init?: ResponseInit) => {
  const [error, rows] = Array.isArray(data) ? data : []
  if (!Array.isArray(rows)) return json.call(Response, data, init)
  const shown = rows.filter((row) => !isTable(row, '_prisma_migrations'))
  shown.sort((a, b) => Number(isTable(b, 'Pet')) - Number(isTable(a, 'Pet')))
  return json.call(Response, [error, shown], init)
}
