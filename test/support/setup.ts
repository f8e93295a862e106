import { execFileSync } from 'node:child_process'

/** The build that tests of whole processes start, made once for the whole run. */
export default function setup() {
  execFileSync(process.execPath, ['src/run.mjs', 'cli', '--help'], { stdio: ['ignore', 'ignore', 'inherit'] })
}
