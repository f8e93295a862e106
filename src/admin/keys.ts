import { runKeys } from './command-line.js'

// `npm run keys`

// A server that does not answer must not keep the process: its connections may stay open.
const LINGER_MS = 1_000

// The write that fails says so. Without this, its error would end the process.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => {})

process.exitCode = await runKeys(process.argv.slice(2), {
  environment: process.env,
  out: (text) =>
    new Promise((written, failed) => void process.stdout.write(text, (error) => (error ? failed(error) : written()))),
  err: (text) => void process.stderr.write(text),
})
setTimeout(() => process.exit(), LINGER_MS).unref()
