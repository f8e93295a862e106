import type { Gateway } from './gateway.js'

/** A value, and its labels. */
type Sample = Record<string, string> & { value: number }

/** The samples of a metric in the text of /metrics. */
export const parseSamples = (text: string, name: string) =>
  [...text.matchAll(new RegExp(`^${name}(?:\\{(.*)\\})? (\\S+)$`, 'gm'))].map(
    ([, labels = '', value]) =>
      ({
        ...Object.fromEntries([...labels.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, text]) => [label, text])),
        value: Number(value),
      }) as Sample,
  )

export async function samples(of: Gateway, name: string) {
  return parseSamples((await of.get('/metrics')).text, name)
}
