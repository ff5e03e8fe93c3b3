// A Session at every moment of its past: all events, folded once, with each version of what they
// changed. To see it at a sequence is then a search by number, and costs nothing to prepare.

import { SessionView } from "./session"
import {
  type AdmittedPrompt,
  kindOf,
  type Loose,
  type SessionInfo,
  type SessionMessage,
  type Todo,
} from "./types"

/** Values by the sequence from which on they are true. */
class Versions<T> {
  readonly #seqs: number[] = []
  readonly #values: T[] = []

  set(seq: number, value: T): void {
    if (this.#values.length > 0 && this.#values.at(-1) === value) return
    if (this.#seqs.at(-1) === seq) {
      this.#values[this.#values.length - 1] = value
      return
    }
    this.#seqs.push(seq)
    this.#values.push(value)
  }

  at(seq: number): T | undefined {
    return this.#values[lastAt(this.#seqs, seq)]
  }
}

interface Placed {
  readonly id: string
  readonly from: number
  until: number
  readonly versions: Versions<SessionMessage>
}

/** What is shown of a Session at one sequence. */
export interface Moment {
  readonly seq: number
  readonly time: number
  readonly info: SessionInfo
  readonly inbox: readonly AdmittedPrompt[]
  readonly todos: readonly Todo[]
  /** The messages then, in order; each is looked up when it is shown. */
  readonly ids: readonly string[]
  message(id: string): SessionMessage | undefined
}

export type Lane = "prompt" | "turn" | "tool" | "person" | "context" | "compaction" | "child"

/** A bar or a mark of the time line, in sequences. */
export interface Bar {
  readonly lane: Lane
  readonly from: number
  to: number | undefined
  readonly label: string
  readonly id: string
  failed?: boolean
}

const LANES: Record<string, Lane> = { task: "child", question: "person" }

export class History {
  readonly events: Loose[] = []
  readonly seqs: number[] = []
  readonly times: number[] = []
  readonly bars: Bar[] = []
  readonly #view: SessionView
  readonly #order: Placed[] = []
  /** A message that a revert removed may come again under its id. */
  readonly #byId = new Map<string, Placed[]>()
  readonly #info = new Versions<SessionInfo>()
  readonly #inbox = new Versions<readonly AdmittedPrompt[]>()
  readonly #todos = new Versions<readonly Todo[]>()
  readonly #open = new Map<string, Bar>()

  /** `now` is the Session as it is: what no event tells, such as its project, is taken from it. */
  constructor(now: SessionInfo) {
    const none = { input: 0, output: 0, reasoning: 0, cache: { read: 0, write: 0 } }
    const { revert: _revert, substitute: _substitute, ...kept } = now
    const session = { ...kept, cost: 0, tokens: none }
    this.#view = new SessionView({ session, messages: [], inbox: [], seq: -1, cursor: {} })
  }

  get lastSeq(): number {
    return this.seqs.at(-1) ?? 0
  }

  get firstSeq(): number {
    return this.seqs[0] ?? 0
  }

  add(event: Loose): void {
    const seq = event.durable?.seq
    if (seq === undefined || seq <= this.#view.seq) return
    const kind = kindOf(event)
    if (kind === "session.created") this.#begin(event.data.info)
    const changed = this.#view.apply(event)
    this.events.push(event)
    this.seqs.push(seq)
    this.times.push(event.data.timestamp ?? event.data.info?.time?.created ?? this.times.at(-1) ?? 0)
    if (kind === "revert.committed") this.#remove(seq)
    else if (changed !== null) this.#keep(changed, seq)
    this.#info.set(seq, this.#view.info)
    this.#inbox.set(seq, this.#view.inbox)
    this.#todos.set(seq, this.#view.todos)
    this.#draw(kind, event.data, seq)
  }

  /** The Session as it was when the event at `seq` had happened. */
  at(seq: number): Moment {
    const found = lastAt(this.seqs, seq)
    const placed = this.#order.filter((each) => each.from <= seq && seq < each.until)
    return {
      seq: this.seqs[found] ?? seq,
      time: this.times[found] ?? 0,
      info: this.#info.at(seq) ?? this.#view.info,
      inbox: this.#inbox.at(seq) ?? [],
      todos: this.#todos.at(seq) ?? [],
      ids: placed.map((each) => each.id),
      message: (id) => this.#byId.get(id)?.findLast((each) => each.from <= seq)?.versions.at(seq),
    }
  }

  /** The place of the last event at or before a sequence. */
  indexOf(seq: number): number {
    return Math.max(0, lastAt(this.seqs, seq))
  }

  #begin(info: any): void {
    const view = this.#view
    view.info = { ...view.info, title: info.title ?? view.info.title }
    if (info.model !== undefined) view.info = { ...view.info, model: info.model }
    if (info.agent !== undefined) view.info = { ...view.info, agent: info.agent }
  }

  #keep(id: string, seq: number): void {
    const message = this.#view.messages.get(id)
    if (message === undefined) return
    let placed = this.#byId.get(id)?.at(-1)
    if (placed === undefined || placed.until !== Infinity) {
      placed = { id, from: seq, until: Infinity, versions: new Versions() }
      this.#byId.set(id, [...(this.#byId.get(id) ?? []), placed])
      this.#order.push(placed)
      this.#keepClosed(seq)
    }
    placed.versions.set(seq, message)
  }

  /** A new step closes the one before, which no event of its own says. */
  #keepClosed(seq: number): void {
    for (let at = this.#order.length - 2; at >= 0; at--) {
      const before = this.#order[at]!
      const message = this.#view.messages.get(before.id)
      if (before.until !== Infinity || message?.type !== "assistant") continue
      before.versions.set(seq, message)
      return
    }
  }

  #remove(seq: number): void {
    for (const placed of this.#order) {
      if (placed.until === Infinity && this.#view.messages.get(placed.id) === undefined) {
        placed.until = seq
      }
    }
  }

  #draw(kind: string, data: any, seq: number): void {
    const begin = (lane: Lane, key: string, label: string, id: string): void => {
      const bar: Bar = { lane, from: seq, to: undefined, label, id }
      this.bars.push(bar)
      this.#open.set(key, bar)
    }
    const end = (key: string, failed = false): void => {
      const bar = this.#open.get(key)
      if (bar === undefined) return
      bar.to = seq
      if (failed) bar.failed = true
      this.#open.delete(key)
    }
    const mark = (lane: Lane, label: string, id: string): void => {
      this.bars.push({ lane, from: seq, to: seq, label, id })
    }
    switch (kind) {
      case "prompted":
        return mark("prompt", data.prompt.text.slice(0, 80), data.messageID)
      case "step.started":
        return begin("turn", data.assistantMessageID, data.model.id, data.assistantMessageID)
      case "step.ended":
        return end(data.assistantMessageID)
      case "step.failed":
        return end(data.assistantMessageID, true)
      case "tool.called":
        return begin(
          LANES[data.tool] ?? "tool",
          `${data.assistantMessageID}/${data.callID}`,
          data.tool,
          data.assistantMessageID,
        )
      case "tool.success":
        return end(`${data.assistantMessageID}/${data.callID}`)
      case "tool.failed":
        return end(`${data.assistantMessageID}/${data.callID}`, true)
      case "context.updated":
      case "synthetic":
        return mark("context", data.text.slice(0, 80), data.messageID)
      case "compaction.started":
        return begin("compaction", "compaction", "Compaction", data.messageID)
      case "compaction.ended":
      case "compaction.reported":
        return end("compaction")
    }
  }
}

/** The place of the last number that is not greater, or -1. */
function lastAt(sorted: readonly number[], wanted: number): number {
  let low = 0
  let high = sorted.length
  while (low < high) {
    const middle = (low + high) >> 1
    if (sorted[middle]! <= wanted) low = middle + 1
    else high = middle
  }
  return low - 1
}
