import type { Results } from './results.js'
export const writeReport = (_: Results) => {}
