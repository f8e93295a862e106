import { renderGraphiQL } from '@graphql-yoga/render-graphiql'

/** GraphiQL with nothing from a CDN. `base` is the path of the base URL. */
export const graphiql = (base: string) =>
  renderGraphiQL({
    title: 'Pet Store GraphiQL',
    endpoint: `${base}/graphql`,
    headers: JSON.stringify({ Authorization: 'Bearer <your key>' }, null, 2),
    shouldPersistHeaders: true,
    defaultQuery:
      '# Put your key under Headers, below.\n{\n  pets(limit: 3) {\n    id\n    name\n    category {\n      name\n    }\n  }\n}\n',
  })
