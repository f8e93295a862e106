import { createServer } from 'node:http'
import { PgSimplifyInflectionPreset } from '@graphile/simplify-inflection'
import { postgraphile } from 'postgraphile'
import { makePgService } from 'postgraphile/adaptors/pg'
import { grafserv } from 'postgraphile/grafserv/node'
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'
import { PostGraphileConnectionFilterPreset } from 'postgraphile-plugin-connection-filter'

// A GraphQL server that nobody here wrote: PostGraphile makes it from the tables, with the preset that its documentation
// recommends. It has neither keys nor limits, and writes no line for a request. The filter plugin is there because a page
// after a given id cannot be asked for otherwise.

const instance = postgraphile({
  extends: [PostGraphileAmberPreset, PgSimplifyInflectionPreset, PostGraphileConnectionFilterPreset],
  pgServices: [
    makePgService({ connectionString: process.env.DATABASE_URL, schemas: ['public'], poolConfig: { max: 10 } }),
  ],
  grafserv: { graphqlPath: '/graphql', graphiql: false, watch: false, websockets: false },
  grafast: { explain: false },
})
const server = createServer()
await instance.createServ(grafserv).addTo(server)
server.listen(Number(process.env.PORT), process.env.HOST)
process.once('SIGTERM', async () => {
  server.close()
  server.closeAllConnections()
  await instance.release()
  process.exit(0)
})
