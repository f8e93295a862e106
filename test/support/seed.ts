// TEST_SEED repeats the random cases of a run that failed, whose message names its seed.

if (process.env.TEST_SEED) {
  const { default: fc } = await import('fast-check')
  fc.configureGlobal({ seed: Number(process.env.TEST_SEED) })
}
