import Negotiator from 'negotiator'
import type { HttpRequest } from './request.js'

/** Whether Accept names a media type, and not to exclude it. A client that accepts everything has not asked for it. */
export const namesType = ({ head }: HttpRequest, type: string): boolean =>
  head.headers.accept?.includes(type) === true &&
  new Negotiator(head).mediaType([`${type}; charset=utf-8`]) !== undefined

/** The first of the codings that the client accepts. */
export function acceptedCoding<Coding extends string>({ head }: HttpRequest, codings: Coding[]): Coding | 'identity' {
  const accepted = new Negotiator(head).encodings(codings)
  return codings.find((coding) => accepted.includes(coding)) ?? 'identity'
}
