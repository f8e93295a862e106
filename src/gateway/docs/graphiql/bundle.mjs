// Bundles GraphiQL for the browser: npm run build.

import { readFile } from 'node:fs/promises'
import { build } from 'esbuild'

const folder = import.meta.dirname

/** Without the fonts that GraphiQL brings (300 KB): the page has those of the system. @type {import('esbuild').Plugin} */
const withoutFonts = {
  name: 'without-fonts',
  setup({ onLoad }) {
    onLoad({ filter: /graphiql[\\/]dist[\\/]style\.css$/ }, async ({ path }) => ({
      contents: (await readFile(path, 'utf8')).replace(/@font-face\s*\{[^}]*\}/g, ''),
      loader: 'css',
    }))
  },
}

await build({
  entryPoints: [
    { in: `${folder}/main.js`, out: 'graphiql' },
    { in: `${folder}/graphiql.css`, out: 'graphiql' },
  ],
  outdir: `${folder}/../../../../dist/graphiql`,
  bundle: true,
  minify: true,
  format: 'esm',
  target: 'es2022',
  loader: { '.graphql': 'text' },
  alias: { 'react-style-singleton': `${folder}/no-styles.js` },
  define: { 'process.env.NODE_ENV': '"production"' },
  legalComments: 'eof',
  plugins: [withoutFonts],
  logLevel: 'warning',
})
