import cluster from 'node:cluster'
import { joinCluster, Primary } from './engines/cluster/index.js'
import { createLog, reasonOf } from './engines/observe/index.js'
import { misspeltSettings, readSettings } from './settings.js'

/**
 * How long closing, and writing the log, may take once no request is in flight, which takes 10 seconds at most (see
 * gateway/http/server.ts).
 */
const CLOSE_MS = 1_700
/** How long a process may take to stop after it has drained. */
const STOP_MS = 13_000

/**
 * Starts the gateway: in this process, or in as many as GATEWAYS says. The process ends with 1 if that fails. The function
 * that it returns ends the process with 0, even if something hangs; called again, it does nothing.
 */
export function start(): (reason: string) => void {
  const closers: (() => unknown)[] = []
  let stopServing = async () => {}
  const member = joinCluster()
  // Until the settings say how much to log.
  let log = createLog('silent')
  let ending = false
  async function end(code: number): Promise<void> {
    if (ending) return
    ending = true
    await stopServing()
    // A log that nothing reads cannot be written, and a database that hangs cannot be closed. The embedded one survives that,
    // as it survives kill -9.
    setTimeout(() => process.exit(code), CLOSE_MS)
    try {
      for (const close of closers.reverse()) await close()
    } finally {
      // An exit writes the lines that wait, but not after those that a thread is writing.
      await new Promise((resolve) => log.flush(resolve))
      process.exit(code)
    }
  }

  async function open(): Promise<string> {
    const settings = readSettings()
    log = createLog(settings.LOG_LEVEL)
    if (cluster.isPrimary) for (const warning of misspeltSettings()) log.warn(warning)
    const onServing = (stop: () => Promise<void>) => {
      stopServing = stop
    }
    const count = settings.GATEWAYS
    if (cluster.isPrimary && count > 1) {
      const primary = new Primary({ count, log, stopMs: settings.DRAIN_SECONDS * 1000 + STOP_MS })
      onServing(() => primary.stop())
      return primary.start()
    }
    // Loaded where it runs: a process that only starts others takes half of the memory.
    const { serve } = await import('./serve.js')
    return serve(settings, { log, member, closers, onServing, onLost: () => void end(1) })
  }

  open()
    .then((text) => member.ready(text))
    .catch(async (error) => {
      // A stop closes what this start uses, so the start fails.
      if (ending) return
      await member.failed(reasonOf(error))
      return end(1)
    })
  return (reason) => {
    if (!ending) log.info({ reason }, 'stopping')
    void end(0)
  }
}
