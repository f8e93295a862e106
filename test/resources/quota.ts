import type { Resource } from './resource.js'

export const quota: Resource = {
  cases: {
    quota: [['success', {}]],
    usage: [
      ['success', {}],
      ['success', { days: 90 }],
      ['invalid_request', { days: 91 }],
    ],
    usageByHour: [
      ['success', {}],
      ['success', { hours: 72 }],
      ['invalid_request', { hours: 73 }],
    ],
  },
}
