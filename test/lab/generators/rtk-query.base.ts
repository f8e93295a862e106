import { createApi, type FetchBaseQueryArgs, type FetchBaseQueryFn, fetchBaseQuery } from '@reduxjs/toolkit/query'

/** RTK Query itself joins the values of a parameter with commas. */
function paramsSerializer(params: object) {
  const query = new URLSearchParams()
  for (const [name, value] of Object.entries(params))
    for (const one of [value].flat()) if (one !== undefined) query.append(name, String(one))
  return query.toString()
}

/** Each store has the address and the key as its extra argument. */
const baseQuery: FetchBaseQueryFn = (args, api, options) =>
  fetchBaseQuery({ ...(api.extra as FetchBaseQueryArgs), paramsSerializer })(args, api, options)

/** The generated client adds its operations. */
export const base = createApi({ baseQuery, endpoints: () => ({}) })
