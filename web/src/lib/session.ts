// One Session that is shown: its fold, kept up to date by the stream, and its past when that is
// looked at.

import { signal } from "@preact/signals"
import type { AgentInfo, CommandInfo, ModelInfo } from "perdure-client"
import { attempt, client, messageOf } from "./api"
import { replace, route, sessionHash } from "./route"
import { listen, onRenewal } from "./stream"
import { History } from "../fold/history"
import { SessionView } from "../fold/session"
import { kindOf, type Loose } from "../fold/types"

const PAGE = 200
const MESSAGES_MAX = 50_000
/** How often a Session that is seen is compared with the log: another process may run it. */
const LOOK_MILLIS = 15_000

export class ShownSession {
  readonly id: string
  view: SessionView | undefined
  /** Counts up with each change of `view`. */
  readonly version = signal(0)
  readonly problem = signal<string | undefined>(undefined)
  readonly isGone = signal(false)
  readonly ids = signal<readonly string[]>([])
  readonly children = signal<ReadonlySet<string>>(new Set())
  readonly history = signal<History | undefined>(undefined)
  readonly historyProblem = signal<string | undefined>(undefined)
  readonly agents = signal<readonly AgentInfo[]>([])
  readonly models = signal<readonly ModelInfo[]>([])
  readonly commands = signal<readonly CommandInfo[]>([])
  #early: Loose[] = []
  #ends: (() => void)[] = []
  #isEnded = false
  #isFilling = false
  #generation = 0

  constructor(id: string) {
    this.id = id
  }

  start(): void {
    this.#ends = [
      listen((events) => this.#receive(events)),
      onRenewal(() => void this.load()),
    ]
    const timer = setInterval(() => {
      if (!document.hidden) void this.#compare()
    }, LOOK_MILLIS)
    const onShow = (): void => {
      if (!document.hidden) void this.#compare()
    }
    document.addEventListener("visibilitychange", onShow)
    this.#ends.push(
      () => clearInterval(timer),
      () => document.removeEventListener("visibilitychange", onShow),
    )
    void this.load()
  }

  end(): void {
    this.#isEnded = true
    for (const end of this.#ends) end()
  }

  /** Load it, or load it again after a lost connection. */
  async load(): Promise<void> {
    const mine = ++this.#generation
    this.#early = []
    try {
      const [snapshot, todos, permissions, questions, attention, children] = await Promise.all([
        client.sessions.snapshot({ sessionID: this.id, limit: PAGE }),
        client.sessions.todos({ sessionID: this.id }),
        client.sessions.permissions.list({ sessionID: this.id }),
        client.sessions.questions.list({ sessionID: this.id }),
        client.sessions.attention(),
        client.sessions.children({ sessionID: this.id }),
      ])
      if (mine !== this.#generation || this.#isEnded) return
      const before = this.view
      const view = new SessionView(snapshot)
      view.todos = todos
      const running = attention.find((each) => each.sessionID === this.id)
      if (running?.running) view.status = { type: "busy" }
      if (running?.recovery?.waiting) view.status = recovering(running.recovery)
      view.addRequests([...permissions, ...questions])
      this.children.value = new Set(children.map((child) => child.id))
      if (before !== undefined) keepEarlier(view, before)
      this.view = view
      this.problem.value = undefined
      for (const event of this.#early) this.#apply(event)
      this.#early = []
      this.#changed(true)
      void this.#fill()
      if (this.history.value !== undefined) void this.loadHistory()
      if (before === undefined) void this.#loadChoices()
    } catch (error) {
      if (mine !== this.#generation) return
      if (this.view === undefined) this.problem.value = messageOf(error)
    }
  }

  /** Load all events, to look at any moment. */
  async loadHistory(): Promise<History | undefined> {
    const { view } = this
    if (view === undefined) return undefined
    const history = new History(view.info)
    const stop = new AbortController()
    try {
      const events = client.sessions.events(
        { sessionID: this.id },
        { signal: stop.signal, replayed: () => stop.abort() },
      )
      for await (const event of events) history.add(event as Loose)
    } catch (error) {
      if (!stop.signal.aborted) {
        this.historyProblem.value = messageOf(error)
        return undefined
      }
    } finally {
      stop.abort()
    }
    this.historyProblem.value = undefined
    this.history.value = history
    return history
  }

  dropHistory(): void {
    this.history.value = undefined
  }

  async #loadChoices(): Promise<void> {
    const { directory, workspaceID: workspace } = this.view!.info.location
    const at = { directory, workspace }
    const [agents, models, commands] = await Promise.all([
      attempt(() => client.agents.list(at)),
      attempt(() => client.models.list(at)),
      attempt(() => client.commands.list(at)),
    ])
    this.agents.value = agents ?? []
    this.models.value = models ?? []
    this.commands.value = commands ?? []
  }

  /** Load the pages before those that are there. */
  async #fill(): Promise<void> {
    const { view } = this
    if (view === undefined || this.#isFilling) return
    this.#isFilling = true
    try {
      while (
        view.earlier !== undefined &&
        view === this.view &&
        view.messages.length < MESSAGES_MAX &&
        !this.#isEnded
      ) {
        const page = await client.sessions.messages({
          sessionID: this.id,
          limit: PAGE,
          cursor: view.earlier,
        })
        const items = [...page.items]
        // The cursor goes back in time; a page itself is in the order of its query.
        if (items.length > 1 && items[0]!.time.created > items.at(-1)!.time.created) items.reverse()
        view.messages.addEarlier(items)
        view.earlier = page.previous ?? undefined
        if (view === this.view) this.#changed(true)
      }
    } catch {
      // What is there is shown; the next look tries again.
    } finally {
      this.#isFilling = false
    }
  }

  async #compare(): Promise<void> {
    const { view } = this
    if (view === undefined) return
    try {
      const found = await client.sessions.history({ sessionID: this.id, after: view.seq, limit: 1 })
      if (view === this.view && found.items.some((event) => event.durable.seq > view.seq)) {
        await this.load()
      }
    } catch {
      // The stream tells whether the server is there.
    }
  }

  #receive(events: readonly Loose[]): void {
    let isChanged = false
    let hasNewIds = false
    for (const event of events) {
      if (!this.#concerns(event)) continue
      if (this.view === undefined) {
        this.#early.push(event)
        continue
      }
      const before = this.view.messages.length
      this.#apply(event)
      isChanged = true
      hasNewIds ||= this.view.messages.length !== before
    }
    if (isChanged) this.#changed(hasNewIds)
    if (this.view?.hasGap) void this.load()
  }

  /** Requests of subagents are shown with the Session that started them. */
  #concerns(event: Loose): boolean {
    const id = event.data?.sessionID ?? event.durable?.aggregateID
    if (id === this.id) return true
    if (event.type === "session.created" && event.data.info?.parentID === this.id) {
      this.children.value = new Set([...this.children.value, event.data.info.id])
    }
    return this.children.value.has(id) && /^(permission|question)\./.test(kindOf(event))
  }

  #apply(event: Loose): void {
    if (kindOf(event) === "deleted") this.isGone.value = true
    this.view!.apply(event)
    if (event.durable !== undefined && event.durable.aggregateID === this.id) {
      this.history.value?.add(event)
    }
    if (kindOf(event) === "revert.committed") void this.load()
  }

  #changed(hasNewIds: boolean): void {
    if (hasNewIds) this.ids.value = [...this.view!.messages.ids]
    this.version.value++
  }
}

function recovering(info: { reason?: any; message?: string | undefined }): any {
  return { type: "idle", outcome: "waiting", reason: info.reason, message: info.message }
}

/** What was loaded before the first message of a new snapshot stays. */
function keepEarlier(view: SessionView, before: SessionView): void {
  const first = view.messages.ids[0]
  if (first === undefined) return
  const at = before.messages.ids.indexOf(first)
  if (at <= 0) return
  view.messages.addEarlier([...before.messages].slice(0, at))
  view.earlier = before.earlier
}

/** Show the Session as it is now. */
export function leaveTimeline(session: ShownSession): void {
  session.dropHistory()
  replace(sessionHash(session.id, route.value.panel))
}
