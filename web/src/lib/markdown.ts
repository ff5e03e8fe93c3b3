// Markdown as DOM nodes, made one by one from marked's tokens. Nothing is parsed as HTML: what looks
// like HTML is shown as text, an image as its description, and a link only leads where it may.

import { lexer, type Token, type Tokens } from "marked"
import { highlightLater } from "./highlight"

const SAFE = /^(https?:|mailto:)/i
const DEPTH_MAX = 24

export function markdown(text: string): Node[] {
  return blocks(read(text), 0)
}

/** Text that is still being written: finished blocks stay, only the rest is read again. */
export class Streamed {
  #text = ""
  #done = 0
  #tail: Node[] = []

  constructor(readonly into: HTMLElement) {}

  show(text: string): void {
    if (!text.startsWith(this.#text)) {
      this.into.replaceChildren()
      this.#done = 0
      this.#tail = []
    }
    this.#text = text
    const tokens = read(text.slice(this.#done))
    for (const node of this.#tail) (node as ChildNode).remove()
    let at = 0
    for (; at < tokens.length - 1; at++) {
      const token = tokens[at]!
      // A list may go on after an empty line.
      if (token.type === "list" && at >= tokens.length - 2) break
      const node = block(token, 0)
      if (node !== null) this.into.append(node)
      this.#done += token.raw.length
    }
    this.#tail = blocks(tokens.slice(at), 0)
    this.into.append(...this.#tail)
  }
}

function read(text: string): Token[] {
  try {
    return lexer(text)
  } catch {
    return [{ type: "paragraph", raw: text, text, tokens: [{ type: "text", raw: text, text }] }]
  }
}

function element(tag: string, children: readonly Node[] = [], name?: string): HTMLElement {
  const made = document.createElement(tag)
  if (name !== undefined) made.className = name
  made.append(...children)
  return made
}

function blocks(tokens: readonly Token[], depth: number): Node[] {
  return tokens.map((token) => block(token, depth)).filter((node) => node !== null)
}

function block(token: Token, depth: number): Node | null {
  if (depth > DEPTH_MAX) return element("p", [new Text(token.raw)])
  switch (token.type) {
    case "space":
    case "def":
      return null
    case "heading":
      // A heading of a message is below those of the page.
      return element(`h${Math.min(6, (token as Tokens.Heading).depth + 2)}`, inline(token, depth))
    case "paragraph":
      return element("p", inline(token, depth))
    case "text":
      return element("span", inline(token, depth))
    case "code":
      return code(token as Tokens.Code)
    case "blockquote":
      return element("blockquote", blocks((token as Tokens.Blockquote).tokens, depth + 1))
    case "hr":
      return element("hr")
    case "list":
      return list(token as Tokens.List, depth)
    case "table":
      return table(token as Tokens.Table, depth)
    default:
      return element("p", [new Text(token.raw)])
  }
}

function code(token: Tokens.Code): HTMLElement {
  const inner = element("code", [new Text(token.text)])
  const language = (token.lang ?? "").replace(/\W.*/, "").toLowerCase()
  if (language !== "") highlightLater(inner, token.text, language)
  const made = element("pre", [inner], "code")
  made.tabIndex = 0
  if (language !== "") made.dataset.language = language
  return made
}

function list(token: Tokens.List, depth: number): HTMLElement {
  const items = token.items.map((item) => {
    const children = blocks(item.tokens, depth + 1)
    if (!item.task) return element("li", children)
    const box = element("span", [new Text(item.checked ? "☑ " : "☐ ")], "box")
    return element("li", [box, ...children], "task")
  })
  const made = element(token.ordered ? "ol" : "ul", items)
  if (token.ordered && typeof token.start === "number" && token.start !== 1) {
    ;(made as HTMLOListElement).start = token.start
  }
  return made
}

function table(token: Tokens.Table, depth: number): HTMLElement {
  const row = (cells: readonly Tokens.TableCell[], tag: string): HTMLElement =>
    element("tr", cells.map((cell) => element(tag, inline(cell, depth))))
  const head = element("thead", [row(token.header, "th")])
  const body = element("tbody", token.rows.map((cells) => row(cells, "td")))
  const made = element("div", [element("table", [head, body])], "scroll-x")
  made.tabIndex = 0
  return made
}

function inline(holder: { tokens?: Token[] | undefined; text?: string }, depth: number): Node[] {
  if (holder.tokens === undefined) return [new Text(unescape(holder.text ?? ""))]
  return holder.tokens.map((token) => piece(token, depth + 1))
}

function piece(token: Token, depth: number): Node {
  if (depth > DEPTH_MAX) return new Text(token.raw)
  switch (token.type) {
    case "strong":
    case "em":
    case "del":
      return element(token.type, inline(token as Tokens.Strong, depth))
    case "codespan":
      return element("code", [new Text(token.text)])
    case "br":
      return element("br")
    case "link":
      return link(token as Tokens.Link, depth)
    case "image":
      return new Text(`[image: ${token.text}]`)
    case "text":
    case "escape":
      return "tokens" in token && token.tokens !== undefined
        ? element("span", inline(token as Tokens.Text, depth))
        : new Text(unescape(token.text))
    default:
      return new Text(token.raw)
  }
}

/** A link whose text is another address than its own says where it leads. */
function link(token: Tokens.Link, depth: number): Node {
  const children = inline(token, depth)
  if (!SAFE.test(token.href)) return element("span", [...children, new Text(` (${token.href})`)])
  const made = element("a", children) as HTMLAnchorElement
  made.href = token.href
  made.rel = "noreferrer noopener"
  made.target = "_blank"
  made.title = token.href
  if (/^\s*(https?:)?\/\//i.test(token.text) && token.text.trim() !== token.href) {
    made.append(new Text(` (${token.href})`))
  }
  return made
}

const ENTITIES: Record<string, string> = { amp: "&", lt: "<", gt: ">", quot: '"', "#39": "'" }

/** marked leaves the entities that it knows as they are written. */
function unescape(text: string): string {
  return text.replace(/&(amp|lt|gt|quot|#39);/g, (_, name: string) => ENTITIES[name]!)
}
