// Follows the live stream of a server for as long as it takes: events as they come, and whether
// the connection stands. After each new connection readers must look again at what they show.

import type { LiveEvent, PerdureClient } from "perdure-client"
// By their files, so that the worker does not hold the whole client.
import { ClientError, DeclaredError } from "../../../clients/typescript/src/errors"

export type Connection = "open" | "lost" | "refused"

export type Told =
  | { readonly events: readonly LiveEvent[] }
  | { readonly connection: Connection; readonly fresh: boolean }

const PAUSE_MILLIS = 300
const PAUSE_MILLIS_MAX = 4_000

export async function follow(
  client: Pick<PerdureClient, "events">,
  tell: (told: Told) => void,
  signal: AbortSignal,
): Promise<void> {
  let attempts = 0
  let isFirst = true
  while (!signal.aborted) {
    try {
      const opened = (): void => {
        attempts = 0
        tell({ connection: "open", fresh: !isFirst })
        isFirst = false
      }
      for await (const event of client.events.subscribe({}, { signal, opened })) {
        tell({ events: [event] })
        if (event.type === "server.lagged") break
      }
    } catch (error) {
      if (signal.aborted) return
      if (error instanceof DeclaredError && error.tag === "UnauthorizedError") {
        tell({ connection: "refused", fresh: false })
        return
      }
      if (!(error instanceof DeclaredError) && !(error instanceof ClientError)) throw error
    }
    tell({ connection: "lost", fresh: false })
    await pause(Math.min(PAUSE_MILLIS * 2 ** attempts++, PAUSE_MILLIS_MAX), signal)
  }
}

function pause(millis: number, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, millis)
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true })
  })
}
