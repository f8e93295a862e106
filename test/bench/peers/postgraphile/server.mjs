import { createServer } from 'node:http'
import simplifyInflector from '@graphile-contrib/pg-simplify-inflector'
import { postgraphile } from 'postgraphile'
import connectionFilter from 'postgraphile-plugin-connection-filter'

// A GraphQL server that nobody here wrote: PostGraphile makes it from the tables, with the options that its documentation
// recommends for production. It has neither keys nor limits, and writes no line for a request. The filter plugin is there
// because a page after a given id cannot be asked for otherwise.

const handle = postgraphile({ connectionString: process.env.DATABASE_URL, max: 10 }, 'public', {
  retryOnInitFail: true,
  dynamicJson: true,
  setofFunctionsContainNulls: false,
  ignoreRBAC: false,
  extendedErrors: ['errcode'],
  appendPlugins: [simplifyInflector, connectionFilter],
  graphiql: false,
  enableQueryBatching: true,
  disableQueryLog: true,
  legacyRelations: 'omit',
})

const server = createServer(handle).listen(Number(process.env.PORT), process.env.HOST)
process.once('SIGTERM', () => {
  handle.release()
  server.close(() => process.exit(0))
  server.closeIdleConnections()
})
