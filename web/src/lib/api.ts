// The client of this page, and whether it may call: the log-in is a form of the page, which sends
// the password itself. It is kept for this tab only.

import { signal } from "@preact/signals"
import { ClientError, DeclaredError, PerdureClient } from "perdure-client"

const KEPT = "perdure.authorization"

export type Access = "checking" | "open" | "asked" | "refused" | "unreachable"

export const access = signal<Access>("checking")
export const authorization = signal<string | null>(sessionStorage.getItem(KEPT))

export let client = make()

function make(): PerdureClient {
  const headers: Record<string, string> = {}
  if (authorization.value !== null) headers.authorization = authorization.value
  return new PerdureClient({ baseUrl: location.origin, headers })
}

function use(value: string | null): void {
  authorization.value = value
  if (value === null) sessionStorage.removeItem(KEPT)
  else sessionStorage.setItem(KEPT, value)
  client = make()
}

/** Find out whether this page may call; a ticket in the address is used up first. */
export async function checkAccess(): Promise<void> {
  const ticket = /^#ticket=([\w-]+)$/.exec(location.hash)?.[1]
  if (ticket !== undefined) {
    // The address is kept by the browser; the ticket must not be.
    history.replaceState(null, "", "#/")
    await redeem(ticket)
  }
  await probe(authorization.value === null ? "asked" : "refused")
}

export async function logIn(user: string, password: string): Promise<void> {
  use(`Basic ${base64(`${user}:${password}`)}`)
  await probe("refused")
}

export function logOut(): void {
  use(null)
  access.value = "asked"
}

async function probe(otherwise: Access): Promise<void> {
  try {
    await client.sessions.list({ limit: 1 })
    access.value = "open"
  } catch (error) {
    const refused = error instanceof DeclaredError && error.tag === "UnauthorizedError"
    if (refused) use(null)
    access.value = refused ? otherwise : "unreachable"
  }
}

async function redeem(ticket: string): Promise<void> {
  try {
    const answer = await fetch("/web/login", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ ticket }),
    })
    if (answer.ok) use(((await answer.json()) as { authorization: string | null }).authorization)
  } catch {
    // The form is shown instead.
  }
}

function base64(text: string): string {
  return btoa(String.fromCharCode(...new TextEncoder().encode(text)))
}

/** What went wrong, in words for a person. */
export function messageOf(error: unknown): string {
  if (error instanceof DeclaredError) {
    if (error.tag === "UnauthorizedError") access.value = "asked"
    return error.message
  }
  if (error instanceof ClientError && error.reason === "transport") {
    return "The server does not answer. What you typed is kept; try again."
  }
  return error instanceof Error ? error.message : String(error)
}

/** Messages about what failed, shown at the edge of the page until they are dismissed. */
export const problems = signal<readonly { readonly id: number; readonly text: string }[]>([])
let lastProblem = 0

export function tell(text: string): void {
  const id = ++lastProblem
  problems.value = [...problems.value.slice(-2), { id, text }]
  setTimeout(() => dismiss(id), 12_000)
}

export function dismiss(id: number): void {
  problems.value = problems.value.filter((each) => each.id !== id)
}

/** Do something; what fails is told, and undefined returned. */
export async function attempt<T>(work: () => Promise<T>): Promise<T | undefined> {
  try {
    return await work()
  } catch (error) {
    tell(messageOf(error))
    return undefined
  }
}
