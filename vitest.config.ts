import { createRequire } from 'node:module'
import { configDefaults, defineConfig } from 'vitest/config'

// What waits for windows to turn and for a second of grace must not compete with the starting of processes: these
// files run first, by themselves.
const timed = ['clients', 'headers-truth', 'limits', 'limits-cluster', 'quota', 'redis-away'].map(
  (name) => `test/${name}.test.ts`,
)

export default defineConfig({
  // Vite would take graphql's ES modules for our files while the libraries take the CommonJS ones: two realms.
  resolve: { alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve('graphql') }] },
  test: {
    globalSetup: 'test/support/setup.ts',
    // Only what hangs is late, on a busy machine too.
    testTimeout: 120_000,
    hookTimeout: 120_000,
    pool: 'threads',
    // Files leave nothing behind in modules but idle databases, so that they can share them: loading costs more than
    // many a test.
    isolate: false,
    projects: [
      { extends: true, test: { name: 'timed', include: timed, maxWorkers: 3, sequence: { groupOrder: 0 } } },
      {
        extends: true,
        test: {
          name: 'rest',
          include: ['test/**/*.test.ts'],
          exclude: [...configDefaults.exclude, ...timed],
          maxWorkers: 3,
          sequence: { groupOrder: 1 },
        },
      },
    ],
  },
})
