// A Session with everything that a client shows of it, changed by each of its events.
//
// Begin with a snapshot, then apply every later event of the live stream once: durable ones that
// are already known are ignored by their sequence, fragments by the cursor of their part. After a
// lost connection take another snapshot; nothing is missing and nothing stands twice.

import { Messages } from "./messages"
import {
  type AdmittedPrompt,
  kindOf,
  type Loose,
  type Request,
  type SessionInfo,
  type SessionSnapshot,
  type Status,
  type Todo,
} from "./types"

type Data = any

export class SessionView {
  info: SessionInfo
  messages: Messages
  inbox: readonly AdmittedPrompt[]
  seq: number
  /** The cursor of the page before the first message; undefined if all are loaded. */
  earlier: string | undefined
  status: Status = { type: "idle" }
  todos: readonly Todo[] = []
  /** Permission requests and questions that wait, by id, in the order of their arrival. */
  requests: ReadonlyMap<string, Request> = new Map()
  /** What the work waits for besides the model: a retry, a compaction. */
  notice = ""
  /** Whether an event came that does not follow the last one: some are missing. */
  hasGap = false

  constructor(snapshot: SessionSnapshot) {
    this.info = snapshot.session
    this.messages = new Messages(snapshot.messages)
    this.inbox = [...snapshot.inbox]
    this.seq = snapshot.seq
    this.earlier = snapshot.cursor.previous
  }

  get isBusy(): boolean {
    return this.status.type !== "idle"
  }

  /** Apply an event of this Session; returns the id of the message that it changed. */
  apply(event: Loose): string | null {
    if (event.durable !== undefined) {
      if (event.durable.seq <= this.seq) return null
      if (event.durable.seq > this.seq + 1) this.hasGap = true
      this.seq = event.durable.seq
    }
    const kind = kindOf(event)
    const { data } = event
    this.#applyToRequests(kind, data)
    this.#applyToInbox(kind, data, this.seq)
    this.#applyToInfo(kind, data)
    this.#applyToNotice(kind, data)
    if (kind === "todo.updated") this.todos = data.todos
    return this.messages.apply(event)
  }

  /** Take up requests that waited before the events began. */
  addRequests(requests: Iterable<Request>): void {
    const after = new Map(this.requests)
    for (const request of requests) if (!after.has(request.id)) after.set(request.id, request)
    this.requests = after
  }

  #applyToRequests(kind: string, data: Data): void {
    switch (kind) {
      case "permission.v2.asked":
      case "question.v2.asked":
        this.requests = new Map([...this.requests, [data.id, data]])
        return
      case "permission.v2.replied":
      case "question.v2.replied":
      case "question.v2.rejected":
        this.requests = new Map([...this.requests].filter(([id]) => id !== data.requestID))
        return
      case "session.status":
        this.status = data.status
    }
  }

  #applyToInbox(kind: string, data: Data, seq: number): void {
    switch (kind) {
      case "prompt.admitted":
        this.inbox = [
          ...this.inbox,
          {
            admittedSeq: seq,
            id: data.messageID,
            sessionID: data.sessionID,
            prompt: data.prompt,
            delivery: data.delivery,
            timeCreated: data.timestamp,
          },
        ]
        return
      case "prompted":
      case "prompt.cancelled":
        this.inbox = this.inbox.filter((item) => item.id !== data.messageID)
        return
      case "prompt.revised":
        this.inbox = this.inbox.map((item) =>
          item.id === data.messageID
            ? { ...item, prompt: data.prompt, delivery: data.delivery }
            : item,
        )
        return
      case "inbox.reordered":
        this.inbox = reordered(this.inbox, data.messageIDs)
    }
  }

  #applyToInfo(kind: string, data: Data): void {
    switch (kind) {
      case "agent.switched":
      case "model.switched": {
        const field = kind.split(".")[0]!
        this.info = { ...without(this.info, "substitute"), [field]: data[field] }
        return
      }
      case "model.substituted": {
        const given = "substitute" in data ? { substitute: data.substitute } : {}
        this.info = { ...without(this.info, "substitute"), ...given }
        return
      }
      case "renamed":
        this.info = { ...this.info, title: data.title }
        return
      case "moved":
        this.info = { ...this.info, location: data.location }
        return
      case "step.ended":
      case "spent":
        this.info = charged(this.info, data)
        return
      case "revert.staged":
        this.info = { ...this.info, revert: data.revert }
        return
      case "revert.cleared":
      case "revert.committed":
        this.info = without(this.info, "revert")
    }
  }

  #applyToNotice(kind: string, data: Data): void {
    switch (kind) {
      case "retried":
        this.notice = `trying again: ${data.error.message}`
        return
      case "compaction.started":
        this.notice = "summarising older messages"
        return
      case "compaction.ended":
      case "step.started":
      case "step.failed":
        this.notice = ""
        return
      case "compaction.reported":
        this.notice = data.note ?? ""
    }
  }
}

/** The named prompts in their new order, in the places that they had before. */
function reordered(
  inbox: readonly AdmittedPrompt[],
  order: readonly string[],
): readonly AdmittedPrompt[] {
  const byId = new Map(inbox.map((item) => [item.id, item]))
  const named = order.filter((id) => byId.has(id)).map((id) => byId.get(id)!)
  const moved = new Set(order)
  return inbox.map((item) => (moved.has(item.id) ? named.shift()! : item))
}

function charged(info: SessionInfo, data: Data): SessionInfo {
  const { tokens: before } = info
  const spent = data.tokens
  return {
    ...info,
    cost: info.cost + data.cost,
    tokens: {
      input: before.input + spent.input,
      output: before.output + spent.output,
      reasoning: before.reasoning + spent.reasoning,
      cache: {
        read: before.cache.read + spent.cache.read,
        write: before.cache.write + spent.cache.write,
      },
    },
  }
}

function without(info: SessionInfo, field: keyof SessionInfo): SessionInfo {
  const { [field]: _, ...kept } = info
  return kept as SessionInfo
}
