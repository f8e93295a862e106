import type { Reporter, TestModule } from 'vitest/node'

/** A container may forbid namespaces, and other users may not read a checkout: no package changes that. */
const MAY_BE_SKIPPED = /in other PID and network namespaces|as another user/

/** Says how many tests of which file were skipped. With CI set, the run then fails. */
export default class Skipped implements Reporter {
  onTestRunEnd(modules: readonly TestModule[]) {
    for (const module of modules) {
      const skipped = [...module.children.allTests('skipped')].filter(({ name }) => !MAY_BE_SKIPPED.test(name)).length
      if (skipped === 0) continue
      console.error(`Skipped: ${skipped} tests of ${module.relativeModuleId}`)
      // A run of one test skips the others of its file.
      if (process.env.CI && !module.project.config.testNamePattern) process.exitCode = 1
    }
  }
}
