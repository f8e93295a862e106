import { createRequire } from 'node:module'
import { configDefaults, defineConfig } from 'vitest/config'

const files = (...names: string[]) => names.map((name) => `test/${name}.test.ts`)
// Tests that wait for the end of a window or for a second of grace must not compete with the start of processes: these
// files run first, on their own.
const timed = files('clients', 'headers-truth', 'limits', 'limits-cluster', 'quota', 'redis-away')
// They measure time: they run last, alone.
const measured = files('hostile-documents', 'hostile-repetitions')

export default defineConfig({
  // Otherwise Vite loads graphql twice, as ES modules and as CommonJS for the libraries, which graphql refuses.
  resolve: { alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve('graphql') }] },
  test: {
    globalSetup: 'test/support/setup.ts',
    // Long enough for a busy machine: only a test that hangs exceeds it.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'threads',
    // Files leave nothing in modules but idle databases, so they share them: loading costs more than many tests.
    isolate: false,
    projects: [
      { extends: true, test: { name: 'timed', include: timed, maxWorkers: 3, sequence: { groupOrder: 0 } } },
      {
        extends: true,
        test: {
          name: 'rest',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...timed, ...measured],
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
      { extends: true, test: { name: 'measured', include: measured, sequence: { groupOrder: 2 } } },
    ],
  },
})
