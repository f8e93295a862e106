export { type Embedded, openEmbedded, optimizeWasmLater } from './open.js'
