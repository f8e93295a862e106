import { createRequire } from 'node:module'
import { defineConfig } from 'vitest/config'

export default defineConfig({
  // Vite would take graphql's ES modules for our files while the libraries take the CommonJS ones: two realms.
  resolve: { alias: [{ find: /^graphql$/, replacement: createRequire(import.meta.url).resolve('graphql') }] },
  test: {
    include: ['test/**/*.test.ts'],
    globalSetup: 'test/support/setup.ts',
    testTimeout: 30_000,
    hookTimeout: 60_000,
    pool: 'threads',
    // Much of the time is spent waiting: for windows to turn, for processes to start.
    maxWorkers: 3,
  },
})
