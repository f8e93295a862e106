/** How long a process may take to answer, in milliseconds. */
export const ANSWER_MS = 3_000
export const late = () => new Error('no answer in time')

/** What a member sends to the primary. Answers are JSON, which the primary passes on unread. */
export type ToPrimary =
  | { type: 'ready'; text: string }
  | { type: 'failed'; reason: string }
  | { type: 'ask'; id: number; topic: string }
  | { type: 'answer'; id: number; answer: string }

/** What the primary sends to a member. */
export type ToMember =
  | { type: 'question'; id: number; topic: string }
  | { type: 'answers'; id: number; answers: (string | null)[] }
