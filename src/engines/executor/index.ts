export { pause } from './execution.js'
export {
  type Apart,
  type Executed,
  type ExecutionRequest,
  MAX_PLANS,
  prepare,
} from './executor.js'
export type { Cancelled } from './plan.js'
export { MAX_EXPANDED, type SelectedField, Selections } from './selections.js'
