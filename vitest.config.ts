import { createRequire } from 'node:module'
import { defineConfig } from 'vitest/config'
import { BaseSequencer, type TestSpecification } from 'vitest/node'

// `npm test`: every promise that needs no second process and no engine.

/** Starts with the file that takes longest: otherwise the others end while it runs alone. */
class LongestFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]) {
    const isLongest = ({ moduleId }: TestSpecification) => Number(moduleId.endsWith('/list-plans.test.ts'))
    return (await super.sort(files)).toSorted((a, b) => isLongest(b) - isLongest(a))
  }
}

export default defineConfig({
  // Otherwise Vite loads graphql twice, as ES modules and as CommonJS for the libraries, which graphql refuses.
  resolve: { alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve('graphql') }] },
  test: {
    include: ['test/*.test.ts'],
    globalSetup: 'test/support/setup.ts',
    // Long enough for a busy machine: only a test that hangs exceeds it.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    expect: { poll: { timeout: 60_000 } },
    pool: 'threads',
    // Files leave nothing in modules but idle databases, so they share them: loading costs more than many tests.
    isolate: false,
    maxWorkers: 3,
    sequence: { sequencer: LongestFirst },
  },
})
