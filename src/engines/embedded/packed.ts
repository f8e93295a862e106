import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { dirname, join, relative } from 'node:path'
import { deserialize, serialize } from 'node:v8'
import { gunzipSync, gzipSync } from 'node:zlib'

// PostgreSQL takes seconds to make a database in WebAssembly, so it is made once, packed, and unpacked where a new one is needed.
// PGlite's own dumpDataDir and loadDataDir were tried: what they write passes through WebAssembly, which takes three times as
// long.

/** A packed database, and what must be the same for it to be used. */
export interface PackedDatabase {
  file: string
  /** What is in it, in any form, for example a hash of its migrations. */
  contents: string
}

/** What a file is packed from: the files of a database by their paths, and its folders, each before what is in it. */
interface Packed {
  version: string
  contents: string
  entries: Map<string, Uint8Array | 'folder'>
}

/** Another version of PGlite may have another PostgreSQL. */
function versionOfPGlite(): string {
  const main = createRequire(import.meta.url).resolve('@electric-sql/pglite')
  return JSON.parse(readFileSync(join(dirname(main), '../package.json'), 'utf8')).version
}

/** Packs the database in a data directory, which no process has open, into a file of about 5 MB. */
export function packDatabase(dataDir: string, { file, contents }: PackedDatabase): void {
  const directory = join(dataDir, 'db')
  const entries: Packed['entries'] = new Map()
  for (const entry of readdirSync(directory, { recursive: true, withFileTypes: true })) {
    const path = join(entry.parentPath, entry.name)
    entries.set(relative(directory, path), entry.isDirectory() ? 'folder' : readFileSync(path))
  }
  const packed: Packed = { version: versionOfPGlite(), contents, entries }
  writeFileSync(`${file}.new`, gzipSync(serialize(packed)))
  renameSync(`${file}.new`, file)
}

/** Reads a packed database. @throws Error if it is not there, damaged, or of another version */
export function readPacked({ file, contents }: PackedDatabase): Packed['entries'] {
  // gzip has a checksum of all that it holds.
  const packed: Partial<Packed> = deserialize(gunzipSync(readFileSync(file)))
  const isOfThis = packed?.version === versionOfPGlite() && packed.contents === contents
  if (!isOfThis || !(packed.entries instanceof Map)) throw new Error('it is of another version')
  return packed.entries
}

/** Writes a packed database into an empty folder. If it cannot be used, calls `onNotice` with one line, and writes nothing. */
export function unpackDatabase(packed: PackedDatabase, directory: string, onNotice: (message: string) => void): void {
  let entries: Packed['entries'] = new Map()
  try {
    entries = readPacked(packed)
  } catch (error) {
    const reason = (error as Error).message
    onNotice(`${packed.file} cannot be used, so this first start takes longer: ${reason}; run npm run build`)
  }
  for (const [path, bytes] of entries) {
    if (bytes === 'folder') mkdirSync(join(directory, path))
    else writeFileSync(join(directory, path), bytes)
  }
}
