import { defineConfig } from 'vitest/config'
import config, { longestFirst } from '../../vitest.config.js'

// `npm run test:system`: the service as operators and browsers meet it.

export default defineConfig({
  ...config,
  test: {
    ...config.test,
    include: ['test/system/*.test.ts'],
    globalSetup: 'test/system/setup.ts',
    sequence: {
      sequencer: longestFirst(
        'browser',
        'usage-page',
        'panels',
        'backup',
        'stop',
        'spans',
        'rest-clients',
        'generated-clients',
        'pooler',
      ),
    },
    reporters: ['default', './test/system/skipped.ts'],
  },
})
