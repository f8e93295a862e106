import { defineConfig } from 'vitest/config'
import config from '../../../vitest.config.js'

// `npm run test:retries`: clients that retry through a network that loses answers, outside `npm test`.

export default defineConfig({
  ...config,
  test: {
    ...config.test,
    include: ['test/lab/retries/*.retries.ts'],
    globalSetup: 'test/support/setup-processes.ts',
    testTimeout: 1_800_000,
    reporters: ['verbose'],
  },
})
