import { runKeys } from './command-line.js'

// `npm run keys`

process.exitCode = await runKeys(process.argv.slice(2), {
  environment: process.env,
  out: (text) => void process.stdout.write(text),
  err: (text) => void process.stderr.write(text),
})
