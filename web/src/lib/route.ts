// Where the page is: `#/`, `#/ses_x`, `#/ses_x/changes`, `#/ses_x/@1234`, `#/health`.

import { computed, signal } from "@preact/signals"

const hash = signal(location.hash)
addEventListener("hashchange", () => (hash.value = location.hash))

export interface Route {
  readonly screen: "sessions" | "session" | "new" | "terminal" | "health" | "settings"
  readonly sessionID?: string
  readonly panel?: Panel | undefined
  /** The sequence of the time line at which the Session is shown. */
  readonly at?: number | undefined
}

export const PANELS = ["context", "changes", "usage", "work"] as const
export type Panel = (typeof PANELS)[number]

export const route = computed<Route>(() => {
  const [first = "", ...rest] = hash.value.replace(/^#\/?/, "").split("/")
  if (first.startsWith("ses_")) {
    const at = rest.map((each) => /^@(\d{1,15})$/.exec(each)?.[1]).find((each) => each !== undefined)
    const panel = PANELS.find((each) => rest.includes(each))
    return {
      screen: "session",
      sessionID: first,
      panel,
      at: at === undefined ? undefined : Number(at),
    }
  }
  if (first === "new" || first === "terminal" || first === "health" || first === "settings") {
    return { screen: first }
  }
  return { screen: "sessions" }
})

export function sessionHash(sessionID: string, panel?: Panel, at?: number): string {
  const parts = [sessionID, panel, at === undefined ? undefined : `@${at}`]
  return `#/${parts.filter((part) => part !== undefined).join("/")}`
}

export function go(to: string): void {
  location.hash = to
}

/** Change the address without a step in the history of the browser. */
export function replace(to: string): void {
  history.replaceState(null, "", to)
  hash.value = location.hash
}
