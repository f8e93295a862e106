// `npm start`. Signals come first: the rest takes a while to load, and a signal at any moment must end the process in
// order. A repeated one changes nothing.
const stop = new AbortController()
for (const signal of ['SIGTERM', 'SIGINT'] as const) process.on(signal, () => stop.abort(signal))

const { start } = await import('./start.js')
await start(stop.signal)
