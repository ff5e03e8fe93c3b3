// Short names for the values of the contract that the fold changes.
import type {
  AdmittedPrompt,
  AssistantMessage,
  AssistantPart,
  DurableEvent,
  LiveEvent,
  PermissionRequest,
  QuestionRequest,
  SessionInfo,
  SessionMessage,
  SessionSnapshot,
  StatusChanged,
  Todo,
  ToolPart,
} from "perdure-client"

export type {
  AdmittedPrompt,
  AssistantMessage,
  AssistantPart,
  DurableEvent,
  LiveEvent,
  PermissionRequest,
  QuestionRequest,
  SessionInfo,
  SessionMessage,
  SessionSnapshot,
  Todo,
  ToolPart,
}
export type Status = StatusChanged["status"]
export type Request = PermissionRequest | QuestionRequest
export type AnyEvent = DurableEvent | LiveEvent

const PREFIX = "session.next."

/** The name of an event without the prefix of those of a Session. */
export function kindOf(event: { readonly type: string }): string {
  return event.type.startsWith(PREFIX) ? event.type.slice(PREFIX.length) : event.type
}

/** An event whose kind is looked at by its name alone. */
export interface Loose {
  readonly type: string
  readonly durable?: { readonly seq: number; readonly aggregateID: string } | undefined
  // The fold reads members by name; their presence is the server's to keep.
  readonly data: any
}
