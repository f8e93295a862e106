// Test files that failed run once more, alone, when nothing else runs. What passes then failed because the machine was
// busy: it is listed with its first error, and does not fail CI. What fails twice does.
//
//   again.mjs note LIST REPORT COMMAND…   after COMMAND failed, whose JSON report of vitest is REPORT
//   again.mjs run LIST                    runs what was noted
import { spawnSync } from 'node:child_process'
import { appendFileSync, existsSync, readFileSync } from 'node:fs'
import { relative } from 'node:path'

const MOST_FILES = 2
/** Their failures are findings, however busy the machine is. */
const NEVER_AGAIN = /quota|limits|retries|faults|fuzz/

const fail = (reason) => {
  console.error(reason)
  process.exit(1)
}

/** The files of a report that failed, each with its first error and the seed of its first random property that failed. */
function failedFiles(report) {
  if (!existsSync(report)) fail('The tests ended without a report.')
  const { testResults } = JSON.parse(readFileSync(report, 'utf8'))
  return testResults.flatMap(({ name, status, message, assertionResults }) => {
    const failed = assertionResults.filter((test) => test.status === 'failed')
    if (status === 'passed' && failed.length === 0) return []
    const error = failed[0]?.failureMessages[0] ?? message ?? ''
    const seed = /\bseed: (-?\d+)/.exec(failed.flatMap(({ failureMessages }) => failureMessages).join())?.[1]
    const test = failed[0]?.fullName ?? 'the file itself'
    return [{ file: relative('.', name), test, error: error.split('\n')[0], seed }]
  })
}

function note(list, report, command) {
  const failed = failedFiles(report)
  if (failed.length === 0) fail('No test failed, but the run did.')
  const finding = failed.find(({ file }) => NEVER_AGAIN.test(file))
  if (finding) fail(`${finding.file} failed, which is a finding: it does not run again.`)
  const { TEST_DATABASE_URL, TEST_REDIS_URL } = process.env
  for (const each of failed) {
    const env = { TEST_DATABASE_URL, TEST_REDIS_URL, TEST_SEED: each.seed }
    appendFileSync(list, `${JSON.stringify({ ...each, command, env })}\n`)
  }
  console.error(`To run again, alone: ${failed.map(({ file }) => file).join(', ')}`)
}

function run(list) {
  const noted = existsSync(list) ? readFileSync(list, 'utf8').trim().split('\n').map(JSON.parse) : []
  const files = new Set(noted.map(({ file }) => file))
  const shown = ({ file, test, error }) => `  ${file} > ${test}\n    ${error}`
  if (files.size > MOST_FILES)
    fail(`${files.size} files failed; at most ${MOST_FILES} run again:\n${noted.map(shown).join('\n')}`)
  for (const each of noted) {
    const [program, ...args] = [...each.command, each.file]
    const { status } = spawnSync(program, args, { stdio: 'inherit', env: { ...process.env, ...each.env } })
    if (status !== 0) fail(`Failed twice:\n${shown(each)}`)
  }
  console.log(noted.length > 0 ? `Passed only alone:\n${noted.map(shown).join('\n')}` : 'Passed only alone: nothing')
}

const [verb, list, report, ...command] = process.argv.slice(2)
if (verb === 'note') note(list, report, command)
else run(list)
