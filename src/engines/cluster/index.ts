export { Alone, joinCluster, type Member } from './member.js'
export { Primary } from './primary.js'
export { totals } from './totals.js'
