/**
 * Sends a statement of our own. Its rows have the values that Prisma would return.
 *
 * @param endsAt by performance.now(): until then it has ended, done or not
 */
export type Query = (text: string, values: unknown[], endsAt?: number) => Promise<Record<string, unknown>[]>
