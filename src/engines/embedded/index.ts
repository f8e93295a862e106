export { type Embedded, hasDatabase, openEmbedded, optimizeWasmLater } from './open.js'
export { type PackedDatabase, packDatabase, readPacked } from './packed.js'
