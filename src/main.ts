// `npm start`. Signals come first: the rest takes a while to load, and a signal at any moment must end the process with 0.
let stop: (signal: string) => void = () => process.exit(0)
for (const signal of ['SIGTERM', 'SIGINT']) process.on(signal, () => stop(signal))

const { start } = await import('./start.js')
stop = start()
