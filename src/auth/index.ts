export { addressSubject, createSecret, keySubject, storedSecret, windowSeconds } from './api-key.js'
export { ApiKeyCache } from './api-key-cache.js'
export { ADDRESS_LIMITED, createAuthentication } from './authenticate.js'
export { createQuota, readQuota } from './quota.js'
