// SHIM until the prepared executor lands
import { type DocumentNode, type ExecutionResult, execute, type GraphQLSchema } from 'graphql'
export function prepare(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName?: string,
  options: { nulls?: 'keep' | 'omit' } = {},
) {
  return async (run: {
    contextValue: unknown
    variables?: Record<string, unknown>
    raw?: boolean
  }): Promise<ExecutionResult> => {
    const r = await execute({
      schema,
      document,
      operationName,
      contextValue: run.contextValue,
      variableValues: run.variables,
    })
    return options.nulls === 'omit'
      ? JSON.parse(JSON.stringify(r.data ?? null, (_k, v) => (v === null ? undefined : v)) ?? 'null') && {
          ...r,
          data: JSON.parse(JSON.stringify(r.data, (_k, v) => (v === null ? undefined : v))),
        }
      : r
  }
}
