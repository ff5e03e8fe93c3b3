// Durable events across lost connections, for a caller who asks for that. The last sequence is
// kept, and the stream is opened again after it: nothing is missed and nothing comes twice. What a
// new connection cannot mend (a declared failure, an answer that makes no sense) ends it as it
// would end a plain stream.

import type { PerdureClient } from "./client.js"
import { ClientError } from "./errors.js"
import type { DurableEvent } from "./generated/types.js"
import type { CallOptions } from "./wire.js"

const FIRST_PAUSE_MILLIS = 100
const PAUSE_MILLIS_MAX = 5_000
const DOUBLINGS_MAX = 10
const GATEWAY_STATUSES: readonly (number | undefined)[] = [502, 503, 504]

/** A stream that was lost is answered again. */
export interface Reconnected {
  /** The last sequence that was seen before. */
  readonly after: number | undefined
  /** How many attempts it took. */
  readonly attempts: number
  /** What the connection was lost to; undefined if the server ended the stream. */
  readonly cause: ClientError | undefined
}

export interface ResumingInput {
  readonly sessionID: string
  readonly after?: number | undefined
  /** Told each time the stream was lost and is there again. */
  readonly reconnected?: (reconnected: Reconnected) => void
}

/** Durable events after a sequence, then those to come, for as long as it takes. */
export async function* resumingEvents(
  client: PerdureClient,
  input: ResumingInput,
  options: CallOptions = {},
): AsyncGenerator<DurableEvent, void, void> {
  const { sessionID, reconnected } = input
  let { after } = input
  let attempts = 0
  let cause: ClientError | undefined
  const opened = (): void => {
    if (attempts > 0) reconnected?.({ after, attempts, cause })
  }
  for (;;) {
    try {
      const events = client.sessions.events({ sessionID, after }, { ...options, opened })
      for await (const event of events) {
        // Only what is delivered proves that the way is open: an answer alone may end at once.
        attempts = 0
        const { seq } = event.durable
        if (after !== undefined && seq <= after) continue
        after = seq
        yield event
      }
      cause = undefined
    } catch (error) {
      if (!passes(error)) throw error
      cause = error
    }
    attempts += 1
    await pause(attempts, options.signal)
  }
}

/** Whether a later attempt may succeed. */
function passes(error: unknown): error is ClientError {
  if (!(error instanceof ClientError)) return false
  return error.reason === "transport" || GATEWAY_STATUSES.includes(error.status)
}

function pause(attempts: number, signal: AbortSignal | undefined): Promise<void> {
  const doubled = FIRST_PAUSE_MILLIS * 2 ** Math.min(attempts - 1, DOUBLINGS_MAX)
  return new Promise((resolve, reject) => {
    const stop = (): void => {
      clearTimeout(timer)
      reject(signal?.reason)
    }
    const go = (): void => {
      signal?.removeEventListener("abort", stop)
      resolve()
    }
    const timer = setTimeout(go, Math.min(doubled, PAUSE_MILLIS_MAX))
    if (signal?.aborted) stop()
    else signal?.addEventListener("abort", stop, { once: true })
  })
}
