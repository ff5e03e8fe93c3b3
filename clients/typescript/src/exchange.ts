// One request under way. It is ended by its caller's signal, by a server that stays silent for too
// long, or when it is closed. Each step of it is waited for here, so that whatever the platform
// throws leaves as one of ours, and a caller's own reason as it was given.

import { ClientError } from "./errors.js"

export class Exchange {
  readonly #controller = new AbortController()
  readonly #caller: AbortSignal | undefined
  readonly #silenceMillisMax: number | undefined
  #silent = false

  constructor(caller: AbortSignal | undefined, silenceMillisMax: number | undefined) {
    caller?.throwIfAborted()
    this.#caller = caller
    this.#silenceMillisMax = silenceMillisMax
    caller?.addEventListener("abort", this.#end, { once: true })
  }

  get signal(): AbortSignal {
    return this.#controller.signal
  }

  /** What `step` gives. A reader that takes its time between two steps is no silence. */
  async wait<T>(step: () => Promise<T>): Promise<T> {
    this.#caller?.throwIfAborted()
    const millis = this.#silenceMillisMax
    const timer = millis === undefined ? undefined : setTimeout(this.#giveUp, millis)
    try {
      return await step()
    } catch (error) {
      throw this.#meaning(error)
    } finally {
      clearTimeout(timer)
    }
  }

  /** Ends the request, unless its answer was read already. */
  close(): void {
    this.#caller?.removeEventListener("abort", this.#end)
    this.#controller.abort()
  }

  readonly #end = (): void => this.#controller.abort()

  readonly #giveUp = (): void => {
    this.#silent = true
    this.#controller.abort()
  }

  #meaning(error: unknown): unknown {
    if (this.#caller?.aborted) return this.#caller.reason
    if (this.#silent) {
      const message = `The server was silent for ${this.#silenceMillisMax} ms`
      return new ClientError("transport", message)
    }
    const message = error instanceof Error ? error.message : String(error)
    return new ClientError("transport", message, { cause: error })
  }
}
