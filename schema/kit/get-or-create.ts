/** The value of a key; the first time, it is created. */
export function getOrCreate<Key, Value>(
  known: { get(key: Key): Value | undefined; set(key: Key, value: Value): unknown },
  key: Key,
  create: () => Value,
): Value {
  const found = known.get(key)
  if (found !== undefined) return found
  const created = create()
  known.set(key, created)
  return created
}
