// One call over HTTP: spelled, sent, read, and every failure told as one of two kinds. Nothing is
// retried and nothing reconnects. What the operations are called and take stands in the generated
// groups; here a path, a query and a body are enough.
//
// The contract says what an answer holds. It is the server's to keep, so that values are given the
// type that was promised and are not checked member by member.

import {
  dataOf,
  decoded,
  EVENT_STREAM,
  failure,
  type History,
  historyOf,
  itemsOf,
  JSON_TYPE,
  type JsonObject,
  type Page,
  pageOf,
  parsed,
  requireType,
  unexpected,
} from "./answers.js"
import { Exchange } from "./exchange.js"
import type { SessionReplayed, SessionReplayedEvent } from "./generated/types.js"
import { EventReader } from "./sse.js"

const ANSWER_MILLIS_MAX = 60_000
/** The server sends something every fifteen seconds; four times that is a dead connection. */
const SILENCE_MILLIS_MAX = 60_000
/** The name of the event that ends the replay of a durable stream. */
const REPLAYED = "session.replayed"
const EVENT_CHARS_MAX = 128 * 1024 * 1024

export interface ClientOptions {
  /** Where the server is, such as `http://127.0.0.1:4096`. */
  readonly baseUrl: string
  /** Sent with every call; those of one call come on top. */
  readonly headers?: HeadersInit
  readonly fetch?: typeof globalThis.fetch
  readonly WebSocket?: typeof globalThis.WebSocket
}

/** How one call is made, apart from what it asks. */
export interface CallOptions {
  readonly headers?: HeadersInit
  /** Ends the call, which then fails with the signal's reason. */
  readonly signal?: AbortSignal
  /** Milliseconds for which the server may stay silent. */
  readonly timeout?: number
  /** Called when a stream is answered, before its first event. */
  readonly opened?: () => void
  /** Called when a durable stream has told all that was stored; what follows is new. */
  readonly replayed?: (replayed: SessionReplayed) => void
}

export type Query = { readonly [name: string]: string | number | undefined }

/** What a call carries besides its method and its path. */
export interface Call {
  readonly query?: Query
  readonly body?: object
  /** The answer may take for ever. */
  readonly patient?: boolean
}

/** Sends calls to one server. Building it touches no network. */
export class Wire {
  readonly #baseUrl: string
  readonly #headers: Headers
  readonly #fetch: typeof globalThis.fetch
  readonly #WebSocket: typeof globalThis.WebSocket | undefined

  constructor(options: ClientOptions) {
    this.#baseUrl = options.baseUrl.replace(/\/+$/, "")
    this.#headers = new Headers({ accept: `${JSON_TYPE}, ${EVENT_STREAM}` })
    overlay(this.#headers, options.headers)
    // A browser's fetch works only as a method of its window.
    this.#fetch = options.fetch ?? globalThis.fetch.bind(globalThis)
    this.#WebSocket = options.WebSocket
  }

  async bare<T>(method: string, path: string, call: Call, options: CallOptions): Promise<T> {
    return (await this.#json(method, path, call, options)) as T
  }

  async data<T>(method: string, path: string, call: Call, options: CallOptions): Promise<T> {
    return dataOf(await this.#json(method, path, call, options)) as T
  }

  async items<T>(
    method: string,
    path: string,
    call: Call,
    options: CallOptions,
  ): Promise<readonly T[]> {
    return itemsOf(await this.#json(method, path, call, options)) as readonly T[]
  }

  async page<T>(method: string, path: string, call: Call, options: CallOptions): Promise<Page<T>> {
    return pageOf(await this.#json(method, path, call, options)) as Page<T>
  }

  async history<T>(
    method: string,
    path: string,
    call: Call,
    options: CallOptions,
  ): Promise<History<T>> {
    return historyOf(await this.#json(method, path, call, options)) as History<T>
  }

  /** A call that is answered with nothing. */
  async done(method: string, path: string, call: Call, options: CallOptions): Promise<void> {
    const { response } = await this.#answer(method, path, call, options)
    if (response.status !== 204) throw unexpected(response.status)
  }

  /** An answer that is no JSON, byte by byte. */
  async content(path: string, call: Call, options: CallOptions): Promise<Uint8Array> {
    return new Uint8Array((await this.#answer("GET", path, call, options)).body)
  }

  /** Events as they come. The first step makes the request; leaving the iteration closes it. */
  async *stream<T>(path: string, call: Call, options: CallOptions): AsyncGenerator<T, void, void> {
    const exchange = new Exchange(options.signal, options.timeout ?? SILENCE_MILLIS_MAX)
    const marked = options.replayed === undefined ? {} : { replayed: "true" }
    const asked = { ...call, query: { ...call.query, ...marked } }
    try {
      const response = await exchange.wait(() => this.#send("GET", path, asked, options, exchange))
      if (response.status !== 200) {
        throw failure(await exchange.wait(() => response.arrayBuffer()), response.status)
      }
      requireType(response, EVENT_STREAM)
      options.opened?.()
      const chunks = response.body?.getReader()
      const events = new EventReader(EVENT_CHARS_MAX)
      while (chunks !== undefined) {
        const { done, value } = await exchange.wait(() => chunks.read())
        if (done) return
        for (const { name, data } of events.feed(value)) {
          options.signal?.throwIfAborted()
          const event: unknown = parsed(data)
          if (name !== REPLAYED) yield event as T
          else options.replayed?.((event as SessionReplayedEvent).data)
        }
      }
    } finally {
      exchange.close()
    }
  }

  /** A connection of the platform's own kind. It carries no headers; a ticket lets it in. */
  socket(path: string, call: Call): WebSocket {
    const Socket = this.#WebSocket ?? globalThis.WebSocket
    if (Socket === undefined) {
      throw new TypeError("This platform has no WebSocket; give the client one")
    }
    return new Socket(this.#address(path, call.query).replace(/^http/i, "ws"))
  }

  async #json(
    method: string,
    path: string,
    call: Call,
    options: CallOptions,
  ): Promise<JsonObject> {
    const { response, body } = await this.#answer(method, path, call, options)
    if (response.status !== 200) throw unexpected(response.status)
    requireType(response, JSON_TYPE)
    return parsed(decoded(body))
  }

  async #answer(
    method: string,
    path: string,
    call: Call,
    options: CallOptions,
  ): Promise<{ response: Response; body: ArrayBuffer }> {
    const patience = call.patient ? undefined : ANSWER_MILLIS_MAX
    const exchange = new Exchange(options.signal, options.timeout ?? patience)
    try {
      const response = await exchange.wait(() => this.#send(method, path, call, options, exchange))
      const body = await exchange.wait(() => response.arrayBuffer())
      if (!response.ok) throw failure(body, response.status)
      return { response, body }
    } finally {
      exchange.close()
    }
  }

  async #send(
    method: string,
    path: string,
    call: Call,
    options: CallOptions,
    exchange: Exchange,
  ): Promise<Response> {
    const headers = new Headers(this.#headers)
    overlay(headers, options.headers)
    const init: RequestInit = { method, headers, signal: exchange.signal }
    if (call.body !== undefined) {
      headers.set("content-type", JSON_TYPE)
      init.body = JSON.stringify(call.body)
    }
    return this.#fetch(this.#address(path, call.query), init)
  }

  #address(path: string, query: Query = {}): string {
    const asked = Object.entries(query).flatMap(([name, value]) =>
      value === undefined ? [] : [`${spelled(name)}=${spelled(String(value))}`],
    )
    return this.#baseUrl + path + (asked.length === 0 ? "" : `?${asked.join("&")}`)
  }
}

/** `value` as one segment of a path, whatever it holds. */
export function segment(value: string): string {
  // A platform folds such a segment away, however it is spelled, and the call goes elsewhere.
  if (value === "." || value === "..") throw new TypeError(`"${value}" cannot be an id`)
  return escaped(value).replaceAll(".", "%2E")
}

/** `whole`, or an object of its one usual part. */
export function either<T>(whole: T | undefined, name: string, part: string | undefined): T {
  if ((whole === undefined) === (part === undefined)) {
    throw new TypeError(`give either \`${name}\`, or the whole that it is a part of`)
  }
  return whole ?? ({ [name]: part } as T)
}

function spelled(value: string): string {
  return escaped(value).replaceAll("%20", "+")
}

/** Percent-encoded but for letters, digits and `_.-~`. */
function escaped(value: string): string {
  return encodeURIComponent(value).replace(
    /[!'()*]/g,
    (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`,
  )
}

function overlay(headers: Headers, more: HeadersInit | undefined): void {
  new Headers(more).forEach((value, name) => headers.set(name, value))
}
