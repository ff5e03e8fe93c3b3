// The list of Sessions: newest first, with what each is doing and whether it waits for a person.

import { computed, signal } from "@preact/signals"
import type { SessionAttention, SessionInfo } from "perdure-client"
import { attempt, client } from "./api"
import { listen, onRenewal } from "./stream"
import { kindOf, type Loose, type Status } from "../fold/types"

export const sessions = signal<readonly SessionInfo[]>([])
export const nextPage = signal<string | undefined>(undefined)
export const isLoaded = signal(false)
export const search = signal("")
export const isArchive = signal(false)
export const statuses = signal<ReadonlyMap<string, Status>>(new Map())
export const attention = signal<ReadonlyMap<string, SessionAttention>>(new Map())

/** How many things wait for a person in a Session. */
export function waitsIn(sessionID: string): number {
  const found = attention.value.get(sessionID)
  if (found === undefined) return 0
  return found.permissions.length + found.questions.length + (found.recovery?.waiting ? 1 : 0)
}

export const waitingCount = computed(() => {
  let total = 0
  for (const id of attention.value.keys()) total += waitsIn(id)
  return total
})

export function isRunning(sessionID: string): boolean {
  const status = statuses.value.get(sessionID)
  if (status !== undefined) return status.type !== "idle"
  return attention.value.get(sessionID)?.running ?? false
}

/** Those that wait for a person, then those that run, then the newest. */
export const sorted = computed(() => {
  const rank = (session: SessionInfo): number =>
    waitsIn(session.id) > 0 ? 0 : isRunning(session.id) ? 1 : 2
  return [...sessions.value].sort(
    (one, other) => rank(one) - rank(other) || other.time.updated - one.time.updated,
  )
})

let generation = 0

export async function loadSessions(): Promise<void> {
  const mine = ++generation
  const found = await attempt(() =>
    client.sessions.list({
      limit: 100,
      order: "desc",
      ...(search.value === "" ? {} : { search: search.value }),
      archived: isArchive.value ? "true" : "false",
    }),
  )
  if (found === undefined || mine !== generation) return
  sessions.value = found.items.filter((session) => session.parentID === undefined)
  nextPage.value = found.next ?? undefined
  isLoaded.value = true
}

export async function loadMore(): Promise<void> {
  const cursor = nextPage.value
  if (cursor === undefined) return
  nextPage.value = undefined
  const mine = generation
  const found = await attempt(() => client.sessions.list({ cursor }))
  if (found === undefined || mine !== generation) return
  const known = new Set(sessions.value.map((session) => session.id))
  const fresh = found.items.filter((it) => it.parentID === undefined && !known.has(it.id))
  sessions.value = [...sessions.value, ...fresh]
  nextPage.value = found.next ?? undefined
}

export async function loadAttention(): Promise<void> {
  const found = await attempt(() => client.sessions.attention())
  if (found === undefined) return
  attention.value = new Map(found.map((each) => [each.sessionID, each]))
  statuses.value = new Map()
}

let planned: ReturnType<typeof setTimeout> | undefined
let listPlanned: ReturnType<typeof setTimeout> | undefined

function later(): void {
  planned ??= setTimeout(() => {
    planned = undefined
    void loadAttention()
  }, 150)
}

function listLater(): void {
  listPlanned ??= setTimeout(() => {
    listPlanned = undefined
    void loadSessions()
  }, 400)
}

export function watchSessions(): void {
  onRenewal(() => {
    void loadSessions()
    void loadAttention()
  })
  listen((events) => {
    for (const event of events) apply(event)
  })
}

function apply(event: Loose): void {
  const kind = kindOf(event)
  const { data } = event
  const change = (id: string, fields: Partial<SessionInfo>): void => {
    sessions.value = sessions.value.map((it) => (it.id === id ? { ...it, ...fields } : it))
  }
  switch (kind) {
    case "session.status":
      statuses.value = new Map([...statuses.value, [data.sessionID, data.status]])
      if (data.status.type === "idle") later()
      return
    case "permission.v2.asked":
    case "permission.v2.replied":
    case "question.v2.asked":
    case "question.v2.replied":
    case "question.v2.rejected":
      return later()
    case "renamed":
      return change(data.sessionID, { title: data.title })
    case "prompted": {
      const found = sessions.value.find((it) => it.id === data.sessionID)
      if (found !== undefined) {
        change(data.sessionID, { time: { ...found.time, updated: Date.now() } })
      }
      return
    }
    case "session.created":
    case "archived":
    case "unarchived":
    case "deleted":
    case "moved":
    case "forked":
      return listLater()
    case "step.ended": {
      const found = sessions.value.find((it) => it.id === data.sessionID)
      if (found !== undefined) change(data.sessionID, { cost: found.cost + data.cost })
    }
  }
}
