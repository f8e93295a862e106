import { Socket } from 'node:net'

/** A socket that sends what one callback and its promises write in one system call, because these are expensive. */
export class GatheringSocket extends Socket {
  #gathering = false

  override write = ((...args: [never]) => {
    if (!this.#gathering) {
      this.#gathering = true
      this.cork()
      process.nextTick(() => {
        this.#gathering = false
        this.uncork()
      })
    }
    return super.write(...args)
  }) as Socket['write']
}
