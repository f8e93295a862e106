import { createVitest } from 'vitest/node'

// Runs one test file at a time, for test/lab/tools/mutants.ts.

const [, , root] = process.argv
const vitest = await createVitest('test', {
  root,
  watch: false,
  include: ['{test,src}/**/*.test.ts'],
  bail: 1,
  reporters: [{}],
  retry: 0,
  testTimeout: 45_000,
})

process.on('message', async ({ test, changed }: { test: string; changed?: string }) => {
  if (changed) vitest.invalidateFile(changed)
  const specifications = await vitest.globTestSpecifications([test])
  const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications)
  // A file whose run was ended by a failure may still be pending.
  const passed =
    testModules.length > 0 && unhandledErrors.length === 0 && testModules.every((module) => module.state() === 'passed')
  if (changed) vitest.invalidateFile(changed)
  process.send?.(passed)
})

// What the tests have started is in the same group.
process.on('disconnect', () => process.kill(-process.pid, 'SIGKILL'))
