// Reading an answer: the promised JSON, what its envelope holds, or what failed.

import { ClientError, DeclaredError, type TaggedValue } from "./errors.js"
import type { JsonValue } from "./generated/types.js"

export const JSON_TYPE = "application/json"
export const EVENT_STREAM = "text/event-stream"

export type JsonObject = { readonly [member: string]: JsonValue }

/** A bounded list, and the cursors of its neighbours. */
export interface Page<T> {
  readonly items: readonly T[]
  readonly previous: string | undefined
  readonly next: string | undefined
}

/** Durable events in their order, and whether there are later ones already. */
export interface History<T> {
  readonly items: readonly T[]
  readonly hasMore: boolean
}

/** What an answer other than success means. */
export function failure(body: ArrayBuffer, status: number): DeclaredError | ClientError {
  let value: JsonObject
  try {
    value = parsed(decoded(body), status)
  } catch {
    // A proxy's page, most likely. The status says more than that it is no JSON.
    return unexpected(status)
  }
  return isTagged(value) ? new DeclaredError(value, status) : unexpected(status)
}

export function unexpected(status: number): ClientError {
  return new ClientError("unexpected-status", `Unexpected status ${status}`, { status })
}

export function requireType(response: Response, wanted: string): void {
  const given = response.headers.get("content-type") ?? ""
  const found = given.split(";", 1)[0]?.trim().toLowerCase()
  if (found === wanted) return
  const message = `Expected ${wanted}, got ${found || "no content type"}`
  throw new ClientError("unsupported-content-type", message, { status: response.status })
}

export function decoded(body: ArrayBuffer): string {
  try {
    return new TextDecoder("utf-8", { fatal: true }).decode(body)
  } catch (cause) {
    throw new ClientError("malformed-response", "The answer is not UTF-8", { cause })
  }
}

export function parsed(text: string, status = 200): JsonObject {
  let value: JsonValue
  try {
    value = JSON.parse(text)
  } catch (cause) {
    const message = "The answer is not the JSON that it claims to be"
    throw new ClientError("malformed-response", message, { status, cause })
  }
  if (!isObject(value)) {
    throw new ClientError("malformed-response", "The answer is not an object", { status })
  }
  return value
}

/** What `{data}` holds. */
export function dataOf(envelope: JsonObject): JsonValue {
  const data = envelope["data"]
  if (data === undefined) {
    throw new ClientError("malformed-response", "The answer holds no `data`")
  }
  return data
}

export function itemsOf(envelope: JsonObject): readonly JsonValue[] {
  const data = dataOf(envelope)
  if (!isList(data)) {
    throw new ClientError("malformed-response", "`data` of the answer is not a list")
  }
  return data
}

export function pageOf(envelope: JsonObject): Page<JsonValue> {
  const links = envelope["cursor"]
  if (!isObject(links)) {
    throw new ClientError("malformed-response", "The answer holds no `cursor`")
  }
  return { items: itemsOf(envelope), previous: side(links, "previous"), next: side(links, "next") }
}

export function historyOf(envelope: JsonObject): History<JsonValue> {
  return { items: itemsOf(envelope), hasMore: envelope["hasMore"] === true }
}

function side(links: JsonObject, name: string): string | undefined {
  const cursor = links[name]
  return typeof cursor === "string" ? cursor : undefined
}

function isObject(value: JsonValue | undefined): value is JsonObject {
  return typeof value === "object" && value !== null && !isList(value)
}

function isList(value: JsonValue): value is readonly JsonValue[] {
  return Array.isArray(value)
}

function isTagged(value: JsonObject): value is TaggedValue {
  return typeof value["_tag"] === "string"
}
