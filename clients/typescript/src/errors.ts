// The two ways in which a call fails: as the contract declares, or because the way there failed.
// A DeclaredError carries the tagged value as it came over the wire. Tell kinds apart with a guard
// of `generated/failures`, never by class: two copies of this package may meet in one program.

import type { JsonValue } from "./generated/types.js"

/**
 * - `transport`: no answer, or it broke off
 * - `unexpected-status`: an answer that the contract does not know
 * - `unsupported-content-type`: an answer in another language
 * - `malformed-response`: the right language, but not the promised shape
 */
export type Reason =
  | "transport"
  | "unexpected-status"
  | "unsupported-content-type"
  | "malformed-response"

export interface TaggedValue {
  readonly _tag: string
  readonly [member: string]: JsonValue
}

/** A failure that is part of the contract: the caller can act on it. */
export class DeclaredError extends Error {
  override readonly name = "DeclaredError"

  constructor(
    readonly value: TaggedValue,
    readonly status: number,
  ) {
    super(`${value._tag}: ${String(value["message"] ?? "")}`)
  }

  get tag(): string {
    return this.value._tag
  }
}

/** The infrastructure failed. What the server did with the request is not known. */
export class ClientError extends Error {
  override readonly name = "ClientError"
  readonly status: number | undefined

  constructor(
    readonly reason: Reason,
    message: string,
    details: { readonly status?: number; readonly cause?: unknown } = {},
  ) {
    super(message, { cause: details.cause })
    this.status = details.status
  }
}

/** Whether `value`, from wherever it came, is a failure of this kind. */
export function hasTag(value: unknown, tag: string): boolean {
  return typeof value === "object" && value !== null && "_tag" in value && value._tag === tag
}
