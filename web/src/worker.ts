// One stream of events for all tabs of a browser, which has only six connections to a server. Tabs
// say hello with what they send to log in, and bye when they close.

import { EventsGroup } from "../../clients/typescript/src/generated/groups"
import { Wire } from "../../clients/typescript/src/wire"
import { follow } from "./lib/follow"

interface Shared {
  onconnect: ((event: MessageEvent) => void) | null
  location: Location
}

const scope = globalThis as unknown as Shared
const ports = new Set<MessagePort>()
let current: { readonly authorization: string | null; readonly stop: AbortController } | undefined
let last: unknown

function post(message: unknown): void {
  if ((message as { connection?: string }).connection !== undefined) last = message
  for (const port of ports) port.postMessage(message)
}

function begin(authorization: string | null): void {
  if (current !== undefined && current.authorization === authorization) return
  current?.stop.abort()
  const stop = new AbortController()
  current = { authorization, stop }
  const headers: Record<string, string> = {}
  if (authorization !== null) headers.authorization = authorization
  const events = new EventsGroup(new Wire({ baseUrl: scope.location.origin, headers }))
  void follow({ events }, post, stop.signal).then(() => {
    if (current?.stop === stop) current = undefined
  })
}

scope.onconnect = (event) => {
  const port = event.ports[0]!
  port.onmessage = ({ data }: MessageEvent<{ hello?: string | null; bye?: true }>) => {
    if (data.bye) {
      ports.delete(port)
      if (ports.size === 0) {
        current?.stop.abort()
        current = undefined
        last = undefined
      }
      return
    }
    ports.add(port)
    begin(data.hello ?? null)
    if (last !== undefined) port.postMessage(last)
  }
}
