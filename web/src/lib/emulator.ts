// A terminal in the page, connected to a program of the server. Loaded when one is opened.

import { FitAddon } from "@xterm/addon-fit"
import { type ITheme, Terminal } from "@xterm/xterm"
import { attempt, client, messageOf } from "./api"

const CONTROL = 0
const RETRY_MILLIS = 800
const ATTEMPTS_MAX = 8

/** Show a terminal in an element; returns what ends it. */
export async function attach(
  element: HTMLElement,
  id: string,
  tell: (problem: string) => void,
): Promise<() => void> {
  const terminal = new Terminal({
    cursorBlink: false,
    fontFamily: "ui-monospace, SFMono-Regular, Menlo, Consolas, 'DejaVu Sans Mono', monospace",
    fontSize: 13,
    scrollback: 5_000,
    screenReaderMode: false,
    theme: themeOf(element),
  })
  const fit = new FitAddon()
  terminal.loadAddon(fit)
  withSheets(() => terminal.open(element))
  const line = new Line(id, terminal, tell)
  terminal.onData((data) => line.send(data))
  terminal.onResize(({ rows, cols }) => {
    void attempt(() => client.terminals.update({ ptyID: id, size: { rows, cols } }))
  })
  const sized = new ResizeObserver(() => fit.fit())
  sized.observe(element)
  await line.open()
  fit.fit()
  terminal.focus()
  return () => {
    sized.disconnect()
    line.close()
    terminal.dispose()
  }
}

class Line {
  #socket: WebSocket | undefined
  #cursor = 0
  #isClosed = false
  #attempts = 0

  constructor(
    readonly id: string,
    readonly terminal: Terminal,
    readonly tell: (problem: string) => void,
  ) {}

  async open(): Promise<void> {
    try {
      const { ticket } = await client.terminals.connectToken({ ptyID: this.id })
      const socket = client.terminals.connect({ ptyID: this.id, ticket, cursor: String(this.#cursor) as never })
      socket.binaryType = "arraybuffer"
      socket.onopen = () => {
        this.#attempts = 0
        this.tell("")
      }
      socket.onmessage = ({ data }) => this.#receive(data)
      socket.onclose = ({ code }) => this.#lost(code)
      this.#socket = socket
    } catch (error) {
      this.tell(messageOf(error))
      this.#lost(1006)
    }
  }

  send(data: string): void {
    if (this.#socket?.readyState === WebSocket.OPEN) this.#socket.send(data)
  }

  close(): void {
    this.#isClosed = true
    this.#socket?.close()
  }

  #receive(data: string | ArrayBuffer): void {
    if (typeof data === "string") {
      this.#cursor += [...data].length
      this.terminal.write(data)
      return
    }
    const bytes = new Uint8Array(data)
    if (bytes[0] !== CONTROL) return
    const told = JSON.parse(new TextDecoder().decode(bytes.subarray(1))) as { cursor?: number }
    if (told.cursor !== undefined) this.#cursor = told.cursor
  }

  #lost(code: number): void {
    if (this.#isClosed) return
    if (code === 1000 || code === 4404) {
      this.tell("The program has ended.")
      return
    }
    if (++this.#attempts > ATTEMPTS_MAX) {
      this.tell("The connection to this terminal is lost.")
      return
    }
    setTimeout(() => !this.#isClosed && void this.open(), RETRY_MILLIS)
  }
}

/** xterm puts its colours into style elements, which the policy of the page refuses; sheets that a
 * script makes are allowed. */
function withSheets(open: () => void): void {
  const make = document.createElement
  document.createElement = ((tag: string, options?: ElementCreationOptions) =>
    tag === "style" ? styleOfScript(make) : make.call(document, tag, options)) as typeof make
  try {
    open()
  } finally {
    document.createElement = make
  }
}

function styleOfScript(make: Document["createElement"]): HTMLElement {
  const sheet = new CSSStyleSheet()
  document.adoptedStyleSheets = [...document.adoptedStyleSheets, sheet]
  const element = make.call(document, "template")
  Object.defineProperty(element, "textContent", {
    get: () => "",
    set: (css: string) => sheet.replaceSync(css),
  })
  const remove = element.remove.bind(element)
  element.remove = () => {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((each) => each !== sheet)
    remove()
  }
  return element
}

function themeOf(element: HTMLElement): ITheme {
  const style = getComputedStyle(element)
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  return {
    background: colour("terminal"),
    foreground: colour("terminal-text"),
    cursor: colour("terminal-text"),
    selectionBackground: colour("terminal-selection"),
  }
}
