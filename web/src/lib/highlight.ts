// Colours for code, from a part of the page that is loaded when the first code is shown.

import type { Highlighter } from "./highlighter"

let loading: Promise<{ highlighted: Highlighter }> | undefined
const CHARS_MAX = 100_000

/** Colour a code element once the highlighter is there; it stays plain if that cannot be loaded. */
export function highlightLater(element: HTMLElement, text: string, language: string): void {
  if (text.length > CHARS_MAX) return
  loading ??= import("./highlighter")
  loading.then(
    ({ highlighted }) => {
      const nodes = highlighted(text, language)
      if (nodes !== undefined && element.textContent === text) element.replaceChildren(...nodes)
    },
    () => (loading = undefined),
  )
}

const LANGUAGES: Record<string, string> = {
  py: "python", ts: "typescript", tsx: "typescript", js: "javascript", mjs: "javascript",
  jsx: "javascript", sh: "bash", bash: "bash", json: "json", rs: "rust", go: "go", html: "xml",
  xml: "xml", svg: "xml", css: "css", yml: "yaml", yaml: "yaml", sql: "sql", java: "java",
  c: "cpp", h: "cpp", cc: "cpp", cpp: "cpp", toml: "ini", ini: "ini", md: "markdown",
}

export function languageOf(path: string): string | undefined {
  return LANGUAGES[/\.(\w+)$/.exec(path)?.[1]?.toLowerCase() ?? ""]
}
