/** Calls once. What this returns does again what came of it: it returns the value, or throws the error. */
export function once<T>(call: () => T): () => T {
  try {
    const value = call()
    return () => value
  } catch (error) {
    return () => {
      throw error
    }
  }
}

/** What a call returns; undefined if it throws. */
export function attempt<T>(call: () => T): T | undefined {
  try {
    return call()
  } catch {
    return undefined
  }
}
