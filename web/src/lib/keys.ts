// Keys of the whole page. A key that types stays with what is typed into.

import { signal } from "@preact/signals"
import { go, route, sessionHash } from "./route"
import { sorted } from "./sessions"

export const isHelpOpen = signal(false)

export const KEYS: readonly (readonly [string, string])[] = [
  ["?", "Show these keys"],
  ["/", "Search the Sessions"],
  ["n", "New Session"],
  ["j / k", "Next or previous Session"],
  ["i", "Write a prompt"],
  ["t", "Open or close the time line"],
  ["1 2 3 4", "Context, changes, usage, work"],
  ["← →", "One event back or on, in the time line"],
  ["Enter", "Send; with Shift a new line"],
  ["Alt Enter", "Send to the queue, after this work"],
  ["Esc", "Close what is open; leave the time line"],
  ["Ctrl .", "Interrupt the work"],
]

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null
  if (element === null) return false
  return /^(INPUT|TEXTAREA|SELECT)$/.test(element.tagName) || element.closest(".xterm") !== null
}

type Handler = (event: KeyboardEvent) => boolean
const handlers = new Set<Handler>()

/** Take keys before the page does; returns what ends it. */
export function onKey(handler: Handler): () => void {
  handlers.add(handler)
  return () => void handlers.delete(handler)
}

export function installKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || (event.target as HTMLElement).closest?.(".xterm")) return
    for (const handler of [...handlers].reverse()) {
      if (handler(event)) return event.preventDefault()
    }
    if (event.ctrlKey || event.metaKey || event.altKey || isTyping(event.target)) return
    if (handle(event.key)) event.preventDefault()
  })
}

export { isTyping }

function handle(key: string): boolean {
  switch (key) {
    case "?":
      isHelpOpen.value = !isHelpOpen.value
      return true
    case "Escape":
      if (!isHelpOpen.value) return false
      isHelpOpen.value = false
      return true
    case "/":
      return focus("#search")
    case "n":
      go("#/new")
      return true
    case "i":
      return focus("#prompt")
    case "j":
      return step(1)
    case "k":
      return step(-1)
    default:
      return false
  }
}

function focus(selector: string): boolean {
  const found = document.querySelector<HTMLElement>(selector)
  found?.focus()
  return found !== null
}

function step(by: number): boolean {
  const list = sorted.value
  if (list.length === 0) return false
  const at = list.findIndex((each) => each.id === route.value.sessionID)
  const next = list[Math.max(0, Math.min(list.length - 1, at < 0 ? 0 : at + by))]!
  go(sessionHash(next.id))
  return true
}
