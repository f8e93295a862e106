import { RateLimiterMemory } from 'rate-limiter-flexible'
import type { Reply, WindowName } from './result.js'
import { ALLOWED, BANNED, type BanRule, type Client, DAY_MS, GRACE_MS, Judged, LIMITED, STRIKES_MS } from './result.js'

interface Record {
  value: number
  readonly expiresAt: number
}

declare module 'rate-limiter-flexible' {
  interface RateLimiterMemory {
    /** Numbers that expire, each by an unref'd timer of its own. Not in the library's types; read for exact ends. */
    readonly _memoryStorage: {
      readonly _storage: ReadonlyMap<string, Record>
      incrby(key: string, value: number, seconds: number): RateLimiterRes
      set(key: string, value: number, seconds: number): RateLimiterRes
      delete(key: string): boolean
    }
  }
}

/**
 * Several windows of one client in the library's own storage, judged in one synchronous step: that makes it atomic.
 * The library's `consume` counts first and refuses afterwards, and knows one window; hence a judgement of our own.
 */
export class MemoryQuota extends RateLimiterMemory {
  readonly #ban: BanRule

  constructor(keyPrefix: string, ban: BanRule) {
    // Limits and lengths come with each client; the library insists on some of its own.
    super({ keyPrefix, points: 1, duration: 1 })
    this.#ban = ban
  }

  override async consume(key: string, cost: number, { client }: { client: Client }): Promise<Judged> {
    const judged = this.decide(key, cost, client)
    if (judged.verdict.outcome === 'allowed') return judged
    throw judged
  }

  /** The same at once, and a refusal is no exception. */
  decide(key: string, cost: number, client: Client): Judged {
    return new Judged(client, cost, this.#judge(this.getKey(key), cost, client))
  }

  /** Goes on from what another store last said. Saying it again changes nothing. */
  recall(key: string, { verdict, carriedUntil }: Judged): void {
    for (const { name, limit, remaining, resetAt } of verdict.windows) {
      const held = this.#live(this.getKey(`${key}:${name}`))
      const used = limit - remaining
      if (used === 0 || (held && held.expiresAt > resetAt)) continue
      if (held?.expiresAt === resetAt) held.value = Math.max(held.value, used)
      else this.#keep(`${key}:${name}`, used, resetAt)
    }
    const until = verdict.outcome === 'banned' ? verdict.until : verdict.outcome === 'limited' && verdict.bannedUntil
    if (until) this.#keep(`${key}:ban`, until, carriedUntil)
  }

  /** What a window holds, by its full key. */
  taken(id: string, name: WindowName): Record | undefined {
    return this.#live(`${id}:${name}`)
  }

  /** Another store has taken over the client's windows. */
  forget(id: string, { windows }: Client): void {
    for (const { name } of windows) this._memoryStorage.delete(`${id}:${name}`)
  }

  #judge(id: string, cost: number, client: Client): Reply {
    const now = Date.now()
    const ban = this.#live(`${id}:ban`, now)
    const held = client.windows.map(({ name }) => this.#live(`${id}:${name}`, now))
    const full = client.windows.filter(({ limit }, i) => (held[i]?.value ?? 0) + cost > limit)
    const reply = [ALLOWED, now, ban?.value ?? 0, ban?.expiresAt ?? 0]
    if (ban) reply[0] = BANNED
    else if (cost > 0 && full.length > 0) {
      reply[0] = LIMITED
      if (client.bannable && this.#strike(id, full, now)) reply.splice(2, 2, ...this.#banish(id, now))
    } else if (cost > 0) {
      for (const [i, { name, seconds }] of client.windows.entries()) {
        this._memoryStorage.incrby(`${id}:${name}`, cost, seconds)
        held[i] ??= this.#live(`${id}:${name}`, now)
      }
    }
    for (const [i, { seconds }] of client.windows.entries())
      reply.push(held[i]?.value ?? 0, held[i]?.expiresAt ?? now + seconds * 1000)
    // The library has read the clock by itself, after us: no window may seem longer than it is.
    reply[1] = Date.now()
    return reply
  }

  /** Counts the refusal when it is a strike; true when that was one too many. */
  #strike(id: string, full: Client['windows'], now: number): boolean {
    let late = false
    for (const { name } of full) {
      const window = this.#live(`${id}:${name}`, now)
      // A window not yet begun has refused nothing before: the cost alone is beyond it.
      if (!window) continue
      const first = this.#live(`${id}:${name}:refused`, now)
      if (!first) this._memoryStorage.set(`${id}:${name}:refused`, now, (window.expiresAt - now) / 1000)
      else if (now - first.value > GRACE_MS) late = true
    }
    if (!late || this.#ban.after === 0) return false
    return this._memoryStorage.incrby(`${id}:strikes`, 1, STRIKES_MS / 1000).consumedPoints >= this.#ban.after
  }

  /** Returns the ban's end, and the end of the mark that carries it. */
  #banish(id: string, now: number): [until: number, carriedUntil: number] {
    const before = this.#live(`${id}:bans`, now)?.value ?? 0
    const length = Math.min(this.#ban.seconds * 1000 * 2 ** before, DAY_MS)
    const carry = Math.min(length, this.#ban.carrySeconds * 1000)
    this._memoryStorage.delete(`${id}:strikes`)
    this._memoryStorage.set(`${id}:bans`, before + 1, (length + DAY_MS) / 1000)
    this._memoryStorage.set(`${id}:ban`, now + length, carry / 1000)
    return [now + length, now + carry]
  }

  #live(id: string, now = Date.now()): Record | undefined {
    const held = this._memoryStorage._storage.get(id)
    return held && held.expiresAt > now ? held : undefined
  }

  /** By the library's restore, which alone takes an absolute end. */
  #keep(key: string, value: number, expiresAt: number): void {
    this.restore({ version: 1, storage: [{ key, value, expiresAt }] })
  }

  /** Nothing stays behind, timers included. */
  clear(): void {
    for (const id of this._memoryStorage._storage.keys()) this._memoryStorage.delete(id)
  }
}
