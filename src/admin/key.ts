import type { ApiKey } from '../../prisma/generated/client/client.js'
import { MAX_INT } from '../../schema/kit/input/rules.js'
import type { Database } from '../gateway/database/index.js'
import { isOver } from '../gateway/keys/index.js'
import { StartupError } from '../startup-error.js'

// A key, as an admin names it and as a command describes it.

/** How many keys a message names. */
const MAX_NAMED = 10

export const bannedUntil = ({ bannedUntil: until }: ApiKey) => (isOver(until) ? null : until)

export type KeyEnd = Pick<ApiKey, 'revokedAt' | 'expiresAt'>

/** Whether a key cannot be used anymore. A ban ends. */
export const isEnded = ({ revokedAt, expiresAt }: KeyEnd) => isOver(revokedAt) || isOver(expiresAt)

export function state(key: ApiKey) {
  if (isOver(key.revokedAt)) return 'revoked'
  if (isOver(key.expiresAt)) return 'expired'
  return bannedUntil(key) ? 'banned' : 'active'
}

/** The prefix in a text: a prefix, its digits, or a whole key. */
export function prefixIn(text = ''): string | undefined {
  const [, ofKey, digits = ofKey] = /^petstore_([0-9a-f]{8})[0-9a-f]*$|^([0-9a-f]{8})$/.exec(text) ?? []
  return digits && `petstore_${digits}`
}

/** The id in a text; 0 if there is none. */
export function idIn(text: string): number {
  const id = /^\d{1,10}$/.test(text) ? Number(text) : 0
  return id <= MAX_INT ? id : 0
}

async function lookUp({ prisma: { apiKey } }: Database, text: string): Promise<ApiKey | null> {
  const [id, prefix] = [idIn(text), prefixIn(text)]
  const key = id > 0 ? await apiKey.findUnique({ where: { id } }) : null
  return key ?? (prefix ? apiKey.findUnique({ where: { prefix } }) : null)
}

const findNamed = ({ prisma: { apiKey } }: Database, name: string): Promise<ApiKey[]> =>
  apiKey.findMany({ where: { name }, orderBy: { id: 'asc' } })

/** What looks like an id or a prefix is never taken for a name. */
const isNoName = (text: string) => idIn(text) > 0 || prefixIn(text) !== undefined

const findByName = async (database: Database, text: string): Promise<ApiKey[]> =>
  isNoName(text) ? [] : findNamed(database, text)

/** `5 (petstore_0a1b2c3d, active), 7 (petstore_3f9a12c4, revoked)` */
function named(keys: ApiKey[]): string {
  const shown = keys.slice(0, MAX_NAMED).map((key) => `${key.id} (${key.prefix}, ${state(key)})`)
  return shown.join(', ') + (keys.length > MAX_NAMED ? ` and ${keys.length - MAX_NAMED} more` : '')
}

const LIST = 'List all keys: npm run keys -- list'

/** Finds a key by its id, its prefix, the digits of its prefix, or the whole key. */
export async function find(database: Database, idOrPrefix: string): Promise<ApiKey> {
  const key = await lookUp(database, idOrPrefix)
  if (key) return key
  const keys = await findByName(database, idOrPrefix)
  const advice = keys.length > 0 ? `This command takes no name. Keys with this name: ${named(keys)}.` : LIST
  throw new StartupError(`There is no key with the id or prefix ${JSON.stringify(idOrPrefix)}. ${advice}`)
}

/**
 * Finds a key by its name, too, for commands that change nothing: the only one with that name, or the only one of them that is
 * neither revoked nor expired.
 */
export async function findToShow(database: Database, idPrefixOrName: string): Promise<ApiKey> {
  const key = await lookUp(database, idPrefixOrName)
  if (key) return key
  const all = await findByName(database, idPrefixOrName)
  const valid = all.filter((key) => !isEnded(key))
  const [only, ...others] = valid.length > 0 ? valid : all
  if (only && others.length === 0) return only
  const name = JSON.stringify(idPrefixOrName)
  if (only)
    throw new StartupError(`Several keys have the name ${name}: ${named(all)}. Say which one by its id or prefix.`)
  throw new StartupError(
    isNoName(idPrefixOrName)
      ? `There is no key with the id or prefix ${name}. A name that looks like one is found by: npm run keys -- list --name ${idPrefixOrName}`
      : `There is no key with the id, prefix or name ${name}. ${LIST}`,
  )
}

/** A line about the keys that have a name already, which another key is about to get. */
export async function sameName(database: Database, name: string): Promise<string | undefined> {
  const keys = await findNamed(database, name)
  if (keys.length === 0) return undefined
  const these = keys.length === 1 ? 'key' : 'keys'
  return `Note: ${JSON.stringify(name)} is also the name of ${these} ${named(keys)}. Tell them apart by id or prefix.`
}
