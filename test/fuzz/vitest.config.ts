import { mergeConfig } from 'vitest/config'
import config from '../../vitest.config.js'

// `npm run fuzz`: the fuzzers, one after the other, outside `npm test`.

const { projects: _, ...test } = config.test ?? {}

export default mergeConfig(
  { ...config, test },
  { test: { include: ['test/fuzz/*.fuzz.ts'], testTimeout: 3_600_000, maxWorkers: 1, reporters: ['verbose'] } },
)
