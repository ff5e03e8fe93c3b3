// The network client: Perdure's contract over HTTP, for browsers and Node, without dependencies.

export type { History, Page } from "./answers.js"
export { PerdureClient } from "./client.js"
export { ClientError, DeclaredError, type Reason, type TaggedValue } from "./errors.js"
export * from "./generated/failures.js"
export type * from "./generated/groups.js"
export type * from "./generated/types.js"
export { type Reconnected, type ResumingInput, resumingEvents } from "./resuming.js"
export type { CallOptions, ClientOptions } from "./wire.js"
