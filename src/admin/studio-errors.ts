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
