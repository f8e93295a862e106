import { runKeys } from './command-line.js'

// `npm run keys`

// A server that does not answer must not keep the process: its connections may stay open.
const LINGER_MS = 1_000

process.exitCode = await runKeys(process.argv.slice(2), {
  environment: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
})
setTimeout(() => process.exit(), LINGER_MS).unref()
