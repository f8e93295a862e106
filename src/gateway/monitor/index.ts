export { createHealth } from './health.js'
export { createMetrics } from './metrics.js'
export { createRequestObserver } from './request-observer.js'
