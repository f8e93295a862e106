import { Socket } from 'node:net'

/** A socket that sends everything written in one turn of the event loop together: system calls are expensive. */
export class GatheringSocket extends Socket {
  #gathering = false

  override write = ((...args: [never]) => {
    if (!this.#gathering) {
      this.#gathering = true
      this.cork()
      setImmediate(() => {
        this.#gathering = false
        this.uncork()
      })
    }
    return super.write(...args)
  }) as Socket['write']
}
