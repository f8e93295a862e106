// Bundles what npm scripts and the image run: npm run build. docs/decisions/0017-one-bundle.md says why.

import { spawnSync } from 'node:child_process'
import { build } from 'esbuild'

// A container is built without the repository, so its builder may name the commit.
const commit = process.env.COMMIT || spawnSync('git', ['rev-parse', 'HEAD'], { encoding: 'utf8' }).stdout?.trim() || ''

await build({
  entryPoints: ['main', 'admin/keys', 'admin/backup', 'admin/studio', 'admin/studio-preload'].map(
    (name) => `src/${name}.ts`,
  ),
  outbase: '.',
  outdir: 'dist',
  bundle: true,
  splitting: true,
  format: 'esm',
  platform: 'node',
  target: 'node20.19',
  define: { COMMIT: JSON.stringify(commit) },
  // Stack traces are mapped when they are printed (src/engines/observe/stack.ts). Their lines need no text.
  sourcemap: true,
  sourcesContent: false,
  // What is WebAssembly, and what tools of observability look for by its name.
  external: ['@electric-sql/pglite', '@prisma/client/runtime/query_compiler*', 'ioredis', 'pg'],
  // For bundled CommonJS modules that load modules of Node.
  banner: {
    js: "import { createRequire as nodeRequire } from 'node:module'\nconst require = nodeRequire(import.meta.url)",
  },
  logLevel: 'warning',
})
