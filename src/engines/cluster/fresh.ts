/** Two of them follow each other, so what is answered is not older than a second. */
const FRESH_MS = 500

/** Asks about a topic, unless it has just been asked: then the answer is the same. Many who ask cost no more than one. */
export function fresh<Answer>(ask: (topic: string) => Promise<Answer>): (topic: string) => Promise<Answer> {
  const recent = new Map<string, Promise<Answer>>()
  return (topic) => {
    const known = recent.get(topic)
    if (known) return known
    const asked = ask(topic)
    recent.set(topic, asked)
    setTimeout(() => recent.delete(topic), FRESH_MS).unref()
    return asked
  }
}
