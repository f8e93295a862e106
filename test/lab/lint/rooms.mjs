// The rooms of the project, and which may import which (npm run check). docs/architecture.md describes them. Circles of files are
// refused by Biome, in tests too.

/** What every file in src/ may import. */
const BASE = '^src/(deadline|project|startup-error)[.]ts$'
/** Of the kit, what engines may import: the ports between both, and two helpers. */
const PORTS = '^schema/kit/(context|errors|attempt|get-or-create)[.]ts$'
/** Loaded only if it is needed, with `import()`. */
const LAZY = '^src/engines/observe/sdk[.]ts$'
const INDEX = '^src/(engines|gateway)/[^/]+/index[.]ts$'
const TEST = '[.]test[.]ts$'

/** @param {string} name @param {string} comment @param {object} from @param {object} to */
const forbid = (name, comment, from, to) => ({ name, comment, severity: /** @type {const} */ ('error'), from, to })

/** Packages that only one room imports. @param {string} packages @param {string} room */
const only = (packages, room) =>
  forbid(
    `${packages.replaceAll('|', '-and-')}-elsewhere`,
    `Only ${room} imports ${packages}.`,
    { path: '^(src|schema)/', pathNot: `^${room}/` },
    { path: `^node_modules/(${packages})/` },
  )

/** @type {import('dependency-cruiser').IConfiguration} */
export default {
  forbidden: [
    forbid('is-there', 'What is imported exists.', {}, { couldNotResolve: true }),
    {
      ...forbid('no-circle-of-folders', 'Folders import each other in a circle.', {}, { circular: true }),
      scope: 'folder',
    },
    forbid(
      'no-test',
      'Only tests import tests.',
      { path: '^(src|schema|prisma)/', pathNot: TEST },
      { path: ['^test/', TEST] },
    ),
    forbid('schema-below-src', 'schema/ knows nothing of what serves it.', { path: '^schema/' }, { path: '^src/' }),
    forbid(
      'schema-without-node',
      'schema/ knows nothing of Node but its hashes.',
      { path: '^schema/' },
      { dependencyTypes: ['core'], pathNot: '^(node:)?crypto$' },
    ),
    forbid(
      'kit-below-shop',
      'What every resource gets knows no resource.',
      { path: '^schema/kit/' },
      { path: '^schema/', pathNot: '^schema/kit/' },
    ),
    forbid(
      'base',
      'What every file may import imports none of them.',
      { path: BASE },
      { path: '^(src|schema)/', pathNot: BASE },
    ),
    forbid(
      'engine-alone',
      "An engine knows its libraries, the base, the log and the kit's ports.",
      { path: '^src/engines/([^/]+)/' },
      { path: '^(src|schema|prisma)/', pathNot: ['^src/engines/($1|observe)/', BASE, PORTS] },
    ),
    forbid(
      'engine-without-kit',
      'The executor knows GraphQL, and the reference an OpenAPI document.',
      { path: '^src/engines/(executor|reference)/' },
      { path: '^schema/', pathNot: '^schema/kit/get-or-create[.]ts$' },
    ),
    forbid(
      'gateway-below-commands',
      'The gateway knows no command and no start.',
      { path: '^src/gateway/' },
      { path: '^src/(admin/|(main|start|serve)[.]ts$)' },
    ),
    forbid(
      'commands-below-start',
      'Commands know no start.',
      { path: '^src/admin/' },
      { path: '^src/(start|serve)[.]ts$' },
    ),
    forbid(
      'by-index',
      "A folder's index.ts is what other folders import.",
      { path: '^src/(engines|gateway)/([^/]+)/' },
      { path: '^src/(engines|gateway)/[^/]+/', pathNot: ['^src/$1/$2/', INDEX] },
    ),
    forbid(
      'by-index-from-above',
      "A folder's index.ts is what the start, the commands and the app import.",
      { path: ['^src/[^/]+$', '^src/gateway/[^/]+$', '^src/admin/', '^prisma/'] },
      { path: '^src/(engines|gateway)/[^/]+/', pathNot: [INDEX, LAZY] },
    ),
    forbid('lazy', 'It is loaded only if it is needed: import().', {}, { path: LAZY, dynamic: false }),
    forbid(
      'entries-are-not-imported',
      'Entry points are not imported.',
      {},
      { path: '^src/(main|admin/(keys|studio|studio-preload|backup|contract))[.]ts$' },
    ),
    only('ioredis|rate-limiter-flexible', 'src/engines/rate-limit'),
    only('pg', 'src/(engines/(postgres|embedded)|gateway/database)'),
    only('@prisma/adapter-pg', 'src/gateway/database'),
    only('@electric-sql/pglite', 'src/engines/embedded'),
    only('graphql-yoga', 'src/gateway/graphql'),
    only('sofa-api', 'src/gateway/rest'),
    only('prom-client', 'src/(engines/cluster|gateway/monitor)'),
    only('pino', 'src/engines/observe'),
    only('@opentelemetry/[^/]+', 'src/(engines/observe|gateway/monitor)'),
    only('marked|highlight.js', 'src/engines/reference'),
  ],
  options: {
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    doNotFollow: { path: ['node_modules', '^prisma/generated/'] },
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['import', 'types', 'node', 'default'] },
  },
}
