export type { Exchange, Findings, ReadRequest, Reply, Route } from './exchange.js'
export { EXPOSED, type HeaderOptions, preflight, serverOptions, setDeprecationHeaders, setHeaders } from './headers.js'
