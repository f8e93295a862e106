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
export { KeyUsage } from './usage.js'
export {
  addOutcomes,
  noOutcomes,
  type Outcomes,
  readUsage,
  readUsed,
  UNIT_MS,
  type Unit,
  USAGE_DAYS,
  type UsedByKey,
} from './usage-tables.js'
