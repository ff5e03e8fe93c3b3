// The events of the server in this tab: from the worker that all tabs share, or without one from a
// stream of its own. Events are handed on in one go for each frame.

import { batch, effect, signal } from "@preact/signals"
import { access, authorization, client } from "./api"
import { type Connection, follow, type Told } from "./follow"
import type { Loose } from "../fold/types"

declare const WORKER_PATH: string

export const connection = signal<Connection | "none">("none")

type Listener = (events: readonly Loose[]) => void
const listeners = new Set<Listener>()
const renewals = new Set<() => void>()
let waiting: Loose[] = []
let isPlanned = false
let started = false

/** Be told events of all Sessions; returns what ends it. */
export function listen(listener: Listener): () => void {
  listeners.add(listener)
  return () => void listeners.delete(listener)
}

/** Be told when events may have been missed: load again what is shown. */
export function onRenewal(renew: () => void): () => void {
  renewals.add(renew)
  return () => void renewals.delete(renew)
}

export function startStream(): void {
  if (started) return
  started = true
  if (typeof SharedWorker === "undefined") {
    void follow(client, receive, new AbortController().signal)
    return
  }
  const policy = trustedTypes()
  const worker = new SharedWorker(policy(WORKER_PATH), { name: "perdure" })
  worker.port.onmessage = ({ data }: MessageEvent<Told>) => receive(data)
  worker.port.start()
  effect(() => {
    if (access.value === "open") worker.port.postMessage({ hello: authorization.value })
  })
  addEventListener("pagehide", () => worker.port.postMessage({ bye: true }))
  addEventListener("pageshow", (event) => {
    if (!event.persisted) return
    worker.port.postMessage({ hello: authorization.value })
    for (const renew of renewals) renew()
  })
}

function receive(told: Told): void {
  if ("events" in told) {
    waiting.push(...(told.events as readonly Loose[]))
    plan()
    return
  }
  connection.value = told.connection
  if (told.connection === "refused") access.value = "asked"
  if (told.connection === "open" && told.fresh) for (const renew of renewals) renew()
}

/** A hidden tab has no frames, but must not fall behind. */
function plan(): void {
  if (isPlanned) return
  isPlanned = true
  if (document.hidden) setTimeout(deliver, 100)
  else requestAnimationFrame(deliver)
}

function deliver(): void {
  isPlanned = false
  const events = waiting
  waiting = []
  batch(() => {
    for (const listener of listeners) listener(events)
  })
}

/** The one policy of the page: it makes the address of its own worker, and nothing else. */
function trustedTypes(): (path: string) => string {
  const factory = (globalThis as any).trustedTypes
  if (factory === undefined) return (path) => path
  const policy = factory.createPolicy("perdure", {
    createScriptURL: (path: string) => {
      if (path !== WORKER_PATH) throw new TypeError("only the worker of this page")
      return path
    },
  })
  return (path) => policy.createScriptURL(path)
}
