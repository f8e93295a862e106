import { mergeConfig } from 'vitest/config'
import config from '../../vitest.config.js'

// `npm run test:retries`: clients that retry through a network that loses answers, outside `npm test`.

const { projects: _, ...test } = config.test ?? {}

export default mergeConfig(
  { ...config, test },
  { test: { include: ['test/retries/*.retries.ts'], testTimeout: 1_800_000, reporters: ['verbose'] } },
)
