// text/event-stream, read: bytes as they come, the data of each event as it is complete.
// Any of CRLF, CR and LF ends a line, several `data` lines join with a newline, a first byte order
// mark and all comments are dropped. An event that the stream's end cuts off is not dispatched.

import { ClientError } from "./errors.js"

/** The data of one event; `name` is empty unless the server named it. */
export interface ServerEvent {
  readonly name: string
  readonly data: string
}

export class EventReader {
  // Bytes may be cut inside a character, and lines anywhere.
  readonly #decoder = new TextDecoder("utf-8", { fatal: true })
  readonly #charsMax: number
  /** The begin of a line in pieces, so that a long one costs no more than its length. */
  #line: string[] = []
  #lineSize = 0
  #name = ""
  #data: string[] = []
  #dataSize = 0
  /** A CR ended the last line; an LF right after it belongs to it. */
  #afterReturn = false

  constructor(charsMax: number) {
    this.#charsMax = charsMax
  }

  /** Every event that `chunk` completes. */
  *feed(chunk: Uint8Array): Generator<ServerEvent, void, void> {
    const text = this.#decoded(chunk)
    let from = this.#afterReturn && text.startsWith("\n") ? 1 : 0
    if (text !== "") this.#afterReturn = text.endsWith("\r")
    const ends = /\r\n|\r|\n/g
    ends.lastIndex = from
    for (let end = ends.exec(text); end !== null; end = ends.exec(text)) {
      this.#line.push(text.slice(from, end.index))
      from = ends.lastIndex
      const event = this.#ended(this.#line.join(""))
      this.#line = []
      this.#lineSize = 0
      if (event !== undefined) yield event
    }
    this.#keep(text.slice(from))
  }

  #decoded(chunk: Uint8Array): string {
    try {
      return this.#decoder.decode(chunk, { stream: true })
    } catch (cause) {
      throw new ClientError("malformed-response", "The stream is not UTF-8", { cause })
    }
  }

  #keep(rest: string): void {
    if (rest === "") return
    this.#line.push(rest)
    this.#lineSize += rest.length
    this.#check()
  }

  #ended(line: string): ServerEvent | undefined {
    if (line !== "") {
      this.#field(line)
      return undefined
    }
    const name = this.#name
    const data = this.#data
    this.#name = ""
    this.#data = []
    this.#dataSize = 0
    return data.length === 0 ? undefined : { name, data: data.join("\n") }
  }

  #field(line: string): void {
    const colon = line.indexOf(":")
    const field = colon === -1 ? line : line.slice(0, colon)
    const value = colon === -1 ? "" : line.slice(line[colon + 1] === " " ? colon + 2 : colon + 1)
    if (field === "event") this.#name = value
    if (field !== "data") return
    this.#data.push(value)
    this.#dataSize += value.length
    this.#lineSize = 0
    this.#check()
  }

  #check(): void {
    if (this.#lineSize + this.#dataSize > this.#charsMax) {
      const message = `A server-sent event is larger than ${this.#charsMax} characters`
      throw new ClientError("malformed-response", message)
    }
  }
}
