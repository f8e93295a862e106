// A server, a database and a role have settings with which sessions begin: a server's time zone, for example, is that of the
// machine on which it was made.

/** What is relied on in every session. Prisma writes a moment without its offset, as the session's time zone has it. */
export const SESSION: Record<string, string> = { TimeZone: 'UTC' }

const all = Object.entries(SESSION)

/** For the startup parameter `options`, where the last one counts. Spaces in it are escaped. */
export const SESSION_OPTIONS = all.map(([name, value]) => `-c ${name}=${value.replaceAll(' ', '\\ ')}`).join(' ')

/** For a transaction: a pooler, whose sessions are shared, takes no options. */
export const SET_LOCAL_SESSION = all.map(([name, value]) => `SET LOCAL ${name} = '${value}'`).join('; ')
