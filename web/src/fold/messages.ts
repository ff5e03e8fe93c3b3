// The messages of a Session: a fold of its events, as the server's own projection makes them.
// Messages that are not loaded, and those that a revert removed, are left alone.

import { applyEvent, applyFragment, isFragment } from "./parts"
import { type AssistantMessage, kindOf, type Loose, type SessionMessage } from "./types"

type Data = any

export class Messages {
  #order: string[] = []
  readonly #byId = new Map<string, SessionMessage>()

  constructor(messages: Iterable<SessionMessage> = []) {
    for (const message of messages) this.#put(message)
  }

  get length(): number {
    return this.#order.length
  }

  /** The ids in the order of creation. */
  get ids(): readonly string[] {
    return this.#order
  }

  get(id: string): SessionMessage | undefined {
    return this.#byId.get(id)
  }

  at(place: number): SessionMessage | undefined {
    return this.#byId.get(this.#order[place] ?? "")
  }

  *[Symbol.iterator](): Iterator<SessionMessage> {
    for (const id of this.#order) yield this.#byId.get(id)!
  }

  /** Put messages before all others. */
  addEarlier(messages: readonly SessionMessage[]): void {
    const fresh = messages.filter((message) => !this.#byId.has(message.id))
    this.#order = [...fresh.map((message) => message.id), ...this.#order]
    for (const message of fresh) this.#byId.set(message.id, message)
  }

  /** Apply a durable event or a fragment; returns the id of the message that it changed. */
  apply(event: Loose): string | null {
    const kind = kindOf(event)
    const { data } = event
    if (isFragment(kind)) {
      const message = this.#byId.get(data.assistantMessageID)
      if (message?.type !== "assistant") return null
      return this.#change(applyFragment(message, kind, data))
    }
    const create = CREATED[kind]
    if (create !== undefined) return this.#create(kind, data, create(data))
    switch (kind) {
      case "shell.ended":
        return this.#endShell(data)
      case "message.excluded":
      case "message.restored":
        return this.#exclude(kind, data)
      case "revert.committed":
        this.#revert(data.messageID)
        return null
      default:
        return this.#applyToAssistant(kind, data)
    }
  }

  #put(message: SessionMessage): void {
    if (!this.#byId.has(message.id)) this.#order.push(message.id)
    this.#byId.set(message.id, message)
  }

  #change(message: SessionMessage | undefined): string | null {
    if (message === undefined) return null
    this.#byId.set(message.id, message)
    return message.id
  }

  #create(kind: string, data: Data, message: SessionMessage): string {
    if (kind === "step.started") this.#closeLastStep(data)
    if (!this.#byId.has(message.id)) this.#put(message)
    return message.id
  }

  /** Close a step that is still open: the process that ran it is gone. */
  #closeLastStep(data: Data): void {
    for (let at = this.#order.length - 1; at >= 0; at--) {
      const message = this.at(at)!
      if (message.type !== "assistant") continue
      if (message.time.completed === undefined) {
        this.#change({ ...message, time: { ...message.time, completed: data.timestamp } })
      }
      return
    }
  }

  #applyToAssistant(kind: string, data: Data): string | null {
    const message = this.#byId.get(data.assistantMessageID ?? "")
    if (message?.type !== "assistant") return null
    if (kind === "step.ended") return this.#change(ended(message, data))
    if (kind === "step.failed") {
      const time = { ...message.time, completed: data.timestamp }
      return this.#change({ ...message, time, finish: "error", error: data.error })
    }
    return this.#change(applyEvent(message, kind, data))
  }

  #endShell(data: Data): string | null {
    for (let at = this.#order.length - 1; at >= 0; at--) {
      const message = this.at(at)!
      if (message.type !== "shell" || message.callID !== data.callID) continue
      const time = { ...message.time, completed: data.timestamp }
      return this.#change({ ...message, output: data.output, time })
    }
    return null
  }

  #exclude(kind: string, data: Data): string | null {
    const message = this.#byId.get(data.messageID)
    if (message === undefined) return null
    const at = kind === "message.excluded" ? data.timestamp : undefined
    if (data.callID === undefined) {
      return this.#change({ ...message, time: marked(message.time, at) } as SessionMessage)
    }
    if (message.type !== "assistant") return message.id
    const content = message.content.map((part) =>
      part.type === "tool" && part.id === data.callID
        ? { ...part, time: marked(part.time, at) }
        : part,
    )
    return this.#change({ ...message, content })
  }

  /** Remove all messages after the one that is kept. */
  #revert(id: string): void {
    const place = this.#order.indexOf(id)
    if (place < 0) return
    for (const removed of this.#order.splice(place + 1)) this.#byId.delete(removed)
  }
}

function marked<T extends { readonly excluded?: number | undefined }>(time: T, at?: number): T {
  const { excluded: _, ...kept } = time
  return (at === undefined ? kept : { ...kept, excluded: at }) as T
}

function ended(message: AssistantMessage, data: Data): AssistantMessage {
  const after: any = {
    ...message,
    time: { ...message.time, completed: data.timestamp },
    finish: data.finish,
    cost: data.cost,
    tokens: data.tokens,
  }
  if ("snapshot" in data || "files" in data) {
    const found: any = {}
    if (message.snapshot?.start !== undefined) found.start = message.snapshot.start
    if (data.snapshot !== undefined) found.end = data.snapshot
    if (data.files !== undefined) found.files = data.files
    after.snapshot = found
  }
  return after
}

/** A message with these fields of an event, and those that the event calls otherwise. */
function created(
  type: string,
  data: Data,
  fields: readonly string[] = [],
  renamed: Record<string, string> = {},
): any {
  const message: any = { type, id: data.messageID, time: { created: data.timestamp } }
  for (const field of fields) if (field in data) message[field] = data[field]
  for (const [name, field] of Object.entries(renamed)) message[name] = data[field]
  return message
}

const CREATED: Record<string, (data: Data) => SessionMessage> = {
  prompted: (data) => {
    const { prompt } = data
    const message = created("user", data)
    message.text = prompt.text
    for (const field of ["files", "agents"]) if (field in prompt) message[field] = prompt[field]
    if ("attached" in data) message.attached = data.attached
    return message
  },
  "step.started": (data) => ({
    type: "assistant",
    id: data.assistantMessageID,
    time: { created: data.timestamp },
    agent: data.agent,
    model: data.model,
    content: [],
    ...(data.snapshot ? { snapshot: { start: data.snapshot } } : {}),
    ...("route" in data ? { route: data.route } : {}),
  }),
  "context.updated": (data) => created("system", data, ["text"]),
  synthetic: (data) => created("synthetic", data, ["sessionID", "text"]),
  "agent.switched": (data) => created("agent-switched", data, ["agent"]),
  "model.switched": (data) => created("model-switched", data, ["model"]),
  "shell.started": (data) => ({ ...created("shell", data, ["callID", "command"]), output: "" }),
  "compaction.ended": (data) =>
    created("compaction", data, ["reason", "recent", "directives", "todos"], { summary: "text" }),
}
