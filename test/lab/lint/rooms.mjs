// The rooms of the project, and which may import which (npm run check). docs/architecture.md describes them.

const PORTS = '^schema/kit/(attempt|context|errors|get-or-create|model)[.]ts$'
const BASE = '^src/(deadline|project|startup-error)[.]ts$'
/** They are loaded only if they are needed. */
const LAZY = ['^src/engines/observe/sdk[.]ts$']

/** @param {string} name @param {string} comment @param {object} from @param {object} to */
const forbid = (name, comment, from, to) => ({ name, comment, severity: /** @type {const} */ ('error'), from, to })

/** What a package is for: only that room imports it. @param {string} packages @param {string} room */
const only = (packages, room) =>
  forbid(
    `only-${room}`,
    `Only ${room} imports ${packages}.`,
    { path: '^(src|schema)/', pathNot: `^${room}/` },
    { path: `^node_modules/(${packages})/` },
  )

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    forbid('no-circle', 'Files import each other in a circle.', {}, { circular: true }),
    {
      ...forbid('no-circle-of-folders', 'Folders import each other in a circle.', {}, { circular: true }),
      scope: 'folder',
    },
    forbid(
      'no-test',
      'Nothing imports tests.',
      { path: '^(src|schema|prisma)/', pathNot: '[.]test[.]ts$' },
      { path: '^test/' },
    ),
    forbid(
      'schema-knows-itself',
      'schema/ knows the generated client, Pothos, GraphQL and itself.',
      { path: '^schema/' },
      { path: ['^src/', '^node_modules/(ioredis|pg|rate-limiter-flexible|sofa-api|graphql-yoga)/'] },
    ),
    forbid(
      'schema-knows-no-node',
      'schema/ knows nothing of Node but its hashes.',
      { path: '^schema/' },
      { dependencyTypes: ['core'], pathNot: '^(node:)?crypto$' },
    ),
    forbid(
      'kit-below-the-shop',
      'What every resource gets knows no resource.',
      { path: '^schema/kit/' },
      { path: '^schema/', pathNot: '^schema/kit/' },
    ),
    forbid(
      'base-knows-no-room',
      'What every room uses imports none.',
      { path: BASE },
      { path: '^(src|schema)/', pathNot: BASE },
    ),
    forbid(
      'engine-knows-itself',
      "An engine knows its libraries, the base, the log and the kit's ports.",
      { path: '^src/engines/([^/]+)/' },
      { path: '^(src|schema)/', pathNot: ['^src/engines/($1|observe)/', BASE, PORTS] },
    ),
    forbid(
      'executor-and-reference-know-no-kit',
      'The executor knows GraphQL, and the reference an OpenAPI document.',
      { path: '^src/engines/(executor|reference)/' },
      { path: '^schema/', pathNot: '^schema/kit/get-or-create[.]ts$' },
    ),
    forbid(
      'gateway-below-commands',
      'The gateway knows no command and no start.',
      { path: '^src/gateway/' },
      { path: '^src/(admin/|(main|start)[.]ts$)' },
    ),
    forbid(
      'by-index',
      "A folder's index.ts is what others import.",
      { path: '^src/(engines|gateway)/([^/]+)/' },
      {
        path: '^src/(engines|gateway)/[^/]+/',
        pathNot: ['^src/$1/$2/', '^src/(engines|gateway)/[^/]+/index[.]ts$', ...LAZY],
      },
    ),
    forbid(
      'by-index-from-above',
      "A folder's index.ts is what others import.",
      { path: ['^src/[^/]+$', '^src/gateway/[^/]+$', '^src/admin/', '^schema/', '^prisma/'] },
      { path: '^src/(engines|gateway)/[^/]+/', pathNot: ['^src/(engines|gateway)/[^/]+/index[.]ts$', ...LAZY] },
    ),
    forbid(
      'entries-are-not-imported',
      'Entry points are not imported.',
      {},
      { path: '^src/(main|admin/(keys|studio|studio-preload|backup|contract))[.]ts$' },
    ),
    only('ioredis|rate-limiter-flexible', 'src/engines/rate-limit'),
    only('pg|@prisma/adapter-pg', 'src/(engines/(postgres|embedded)|gateway/database)'),
    only('@electric-sql/pglite', 'src/engines/embedded'),
    only('graphql-yoga', 'src/gateway/graphql'),
    only('sofa-api', 'src/gateway/rest'),
    only('prom-client', 'src/gateway/monitor'),
    only('pino', 'src/engines/observe'),
    only('@opentelemetry/[^/]+', 'src/(engines/observe|gateway/monitor)'),
    only('marked|highlight.js', 'src/engines/reference'),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '^prisma/generated/' },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
}
