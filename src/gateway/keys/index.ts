export {
  addressSubject,
  createSecret,
  isOver,
  keySubject,
  storedSecret,
  windowSeconds,
  writeKeys,
} from './api-key.js'
export { ApiKeyCache } from './api-key-cache.js'
export { type Caller, createAuthentication, requireWriteAccess } from './authenticate.js'
export { type Cost, createQuota, FREE_PER_MINUTE, type QuotaDecision, readQuota } from './quota.js'
export { type Figures, KeyUsage, readUsage, USAGE_DAYS } from './usage.js'
