// The benchmark removes everything that it creates: at the end, after an error, on Ctrl-C, and when npm ends.

const cleanups: (() => unknown)[] = []
let stopping = false

/** Runs at the end, the latest first. */
export const atEnd = (cleanup: () => unknown) => void cleanups.push(cleanup)

async function cleanUp() {
  for (const cleanup of cleanups.splice(0).reverse()) {
    try {
      await cleanup()
    } catch (error) {
      console.error('Cleaning up failed:', (error as Error).message)
      process.exitCode = 1
    }
  }
}

export const isStopping = () => stopping

async function stop(reason: string) {
  if (stopping) return
  stopping = true
  console.error(`\n${reason}: cleaning up …`)
  await cleanUp()
  process.exit(130)
}

/** Runs a program and cleans up after it, however it ends. */
export async function runProgram(program: () => Promise<void>) {
  for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) process.on(signal, () => stop(signal))
  // npm runs scripts in a shell that does not pass on the signals that npm gets.
  const parent = process.ppid
  setInterval(() => process.ppid !== parent && stop('The parent process is gone'), 500).unref()
  try {
    await program()
  } catch (error) {
    if (!stopping) {
      console.error(error instanceof Refusal ? error.message : error)
      process.exitCode = 1
    }
  }
  // The signal handler ends the process; errors during that time are caused by it.
  if (stopping) return
  stopping = true
  await cleanUp()
  process.exit()
}

/** Ends the run with a message for people, without a stack. */
export class Refusal extends Error {}
