export { createLog, type Logger } from './log.js'
export { reasonOf } from './stack.js'
export {
  addToSpan,
  describeStatement,
  inSpan,
  inTrace,
  LinkedSpans,
  openTrace,
  outsideTraces,
  readTrace,
  spanMethod,
  type Trace,
  traceparent,
} from './tracing.js'
