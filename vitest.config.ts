import { createRequire } from 'node:module'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// `npm test`: every promise that needs no second process and no browser.

/** Starts with the files that take longest, in this order: otherwise the others end while one of them runs alone. */
export const longestFirst = (...names: string[]) =>
  class extends BaseSequencer {
    override async sort(files: TestSpecification[]) {
      const rank = ({ moduleId }: TestSpecification) => {
        const index = names.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
        return index < 0 ? names.length : index
      }
      return (await super.sort(files)).toSorted((a, b) => rank(a) - rank(b))
    }
  }

export default defineConfig({
  // Otherwise Vite loads graphql twice, as ES modules and as CommonJS for the libraries, which graphql refuses.
  resolve: { alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve('graphql') }] },
  test: {
    include: ['test/*.test.ts', 'src/engines/**/*.test.ts'],
    globalSetup: 'test/support/setup.ts',
    setupFiles: 'test/support/seed.ts',
    // Only a test that hangs may exceed these, on a busy machine too: it goes on in the store that the next file uses.
    testTimeout: 600_000,
    hookTimeout: 600_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'threads',
    // Files leave nothing in modules but idle databases, so they share them: loading costs more than many tests.
    isolate: false,
    maxWorkers: 3,
    sequence: { sequencer: longestFirst('list-plans') },
  },
})
