// The parts of an assistant message, changed by the events and fragments that name them. Nothing is
// changed in place: a part that changes is a new object in a new message, so that earlier versions
// stay as they were.
//
// A part that is open has a `cursor`: the number of the last fragment that its text contains. A
// fragment that is already part of the text is ignored, so that a client may join at any moment.
// Provider ids may repeat inside one message: the last part with an id is the one that is changed.

import type { AssistantMessage, AssistantPart, ToolPart } from "./types"

type Data = any
type Change = (message: AssistantMessage, data: Data) => AssistantMessage

/** The message after an event; undefined if the event changes no part. */
export function applyEvent(
  message: AssistantMessage,
  kind: string,
  data: Data,
): AssistantMessage | undefined {
  return CHANGES[kind]?.(message, data)
}

const FRAGMENTS: Record<string, readonly [AssistantPart["type"], string]> = {
  "text.delta": ["text", "textID"],
  "reasoning.delta": ["reasoning", "reasoningID"],
  "tool.input.delta": ["tool", "callID"],
}

export const isFragment = (kind: string): boolean => kind in FRAGMENTS

/** The message after a fragment; undefined if the part has it already, or has ended. */
export function applyFragment(
  message: AssistantMessage,
  kind: string,
  data: Data,
): AssistantMessage | undefined {
  const [of, key] = FRAGMENTS[kind]!
  const at = placeOf(message, of, data[key])
  const part = message.content[at]
  if (part?.cursor === undefined || part.cursor >= data.cursor) return undefined
  if (part.type === "tool") {
    const state = { ...part.state, input: part.state.input + data.delta }
    return replaced(message, at, { ...part, cursor: data.cursor, state } as ToolPart)
  }
  return replaced(message, at, { ...part, cursor: data.cursor, text: part.text + data.delta })
}

function placeOf(message: AssistantMessage, type: AssistantPart["type"], id: string): number {
  for (let at = message.content.length - 1; at >= 0; at--) {
    const part = message.content[at]!
    if (part.type === type && part.id === id) return at
  }
  return -1
}

function replaced(message: AssistantMessage, at: number, part: AssistantPart): AssistantMessage {
  const content = message.content.slice()
  content[at] = part
  return { ...message, content }
}

function added(message: AssistantMessage, part: object): AssistantMessage {
  return { ...message, content: [...message.content, part as AssistantPart] }
}

/** Change the last part of a type and id, if there is one; the part is a copy. */
function onPart(
  message: AssistantMessage,
  type: AssistantPart["type"],
  id: string,
  change: (part: any) => AssistantPart | undefined,
): AssistantMessage {
  const at = placeOf(message, type, id)
  if (at < 0) return message
  const after = change({ ...message.content[at]! })
  return after === undefined ? message : replaced(message, at, after)
}

function onCall(
  message: AssistantMessage,
  data: Data,
  statuses: readonly string[],
  change: (part: any) => AssistantPart,
): AssistantMessage {
  return onPart(message, "tool", data.callID, (part) =>
    statuses.includes(part.state.status) ? change(part) : undefined,
  )
}

function settled(part: any, state: any, data: Data): ToolPart {
  if ("result" in data) state.result = data.result
  const before = part.provider ?? {}
  const provider: any = { executed: data.provider.executed || (before.executed ?? false) }
  if ("metadata" in before) provider.metadata = before.metadata
  if ("metadata" in data.provider) provider.resultMetadata = data.provider.metadata
  delete part.cursor
  return { ...part, state, provider, time: { ...part.time, completed: data.timestamp } }
}

const CHANGES: Record<string, Change> = {
  "text.started": (message, data) =>
    added(message, { type: "text", id: data.textID, text: "", cursor: 0 }),
  "text.ended": (message, data) =>
    onPart(message, "text", data.textID, (part) => {
      delete part.cursor
      return { ...part, text: data.text }
    }),
  "reasoning.started": (message, data) =>
    added(message, {
      type: "reasoning",
      id: data.reasoningID,
      text: "",
      ...("providerMetadata" in data ? { providerMetadata: data.providerMetadata } : {}),
      time: { created: data.timestamp },
      cursor: 0,
    }),
  "reasoning.ended": (message, data) =>
    onPart(message, "reasoning", data.reasoningID, (part) => {
      delete part.cursor
      const created = part.time?.created ?? data.timestamp
      const metadata = "providerMetadata" in data ? { providerMetadata: data.providerMetadata } : {}
      return { ...part, text: data.text, time: { created, completed: data.timestamp }, ...metadata }
    }),
  "tool.input.started": (message, data) =>
    added(message, {
      type: "tool",
      id: data.callID,
      name: data.name,
      state: { status: "pending", input: "" },
      time: { created: data.timestamp },
      cursor: 0,
    }),
  "tool.input.ended": (message, data) =>
    onCall(message, data, ["pending"], (part) => {
      delete part.cursor
      return { ...part, state: { status: "pending", input: data.text } }
    }),
  "tool.called": (message, data) =>
    onCall(message, data, ["pending"], (part) => {
      delete part.cursor
      return {
        ...part,
        state: { status: "running", input: data.input, structured: {}, content: [] },
        provider: { ...data.provider },
        time: { ...part.time, ran: data.timestamp },
      }
    }),
  "tool.progress": (message, data) =>
    onCall(message, data, ["running"], (part) => ({
      ...part,
      state: { ...part.state, structured: data.structured, content: data.content },
    })),
  "tool.success": (message, data) =>
    onCall(message, data, ["running"], (part) =>
      settled(
        part,
        {
          status: "completed",
          input: part.state.input,
          content: data.content,
          outputPaths: data.outputPaths ?? [],
          structured: data.structured,
        },
        data,
      ),
    ),
  "tool.failed": (message, data) =>
    onCall(message, data, ["pending", "running"], (part) => {
      // A raw input that never became JSON is dropped: the field is an object from here on.
      const before = part.state.status === "running" ? part.state : {}
      const state = {
        status: "error",
        input: before.input ?? {},
        content: before.content ?? [],
        structured: before.structured ?? {},
        error: data.error,
      }
      return settled(part, state, data)
    }),
  "tool.pruned": (message, data) =>
    onCall(message, data, ["completed", "error"], (part) => {
      const { state } = part
      const isNew =
        state.status === "completed" && data.path && !state.outputPaths.includes(data.path)
      const kept = isNew ? { ...state, outputPaths: [...state.outputPaths, data.path] } : state
      return { ...part, state: kept, time: { ...part.time, pruned: data.timestamp } }
    }),
}
