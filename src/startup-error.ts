/** A failure to start that the user can fix: printed without a stack trace; exit code 1. */
export class StartupError extends Error {}
