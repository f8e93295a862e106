export { pause } from './execution.js'
export {
  type Executed,
  type ExecutionRequest,
  type Isolate,
  MAX_PLANS,
  type PreparedOperation,
  prepare,
} from './executor.js'
export type { Cancelled } from './plan.js'
export { MAX_EXPANDED, type SelectedField, Selections } from './selections.js'
