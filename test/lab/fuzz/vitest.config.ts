import { defineConfig } from 'vitest/config'
import config from '../../../vitest.config.js'

// `npm run fuzz`: the fuzzers and what measures, one after the other, outside `npm test`.

export default defineConfig({
  ...config,
  test: {
    ...config.test,
    include: ['test/lab/fuzz/*.fuzz.ts'],
    testTimeout: 3_600_000,
    maxWorkers: 1,
    reporters: ['verbose'],
  },
})
