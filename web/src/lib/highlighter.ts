// highlight.js with the languages that agents write most, as nodes: its tree is walked, so that
// nothing is parsed as HTML.

import core from "highlight.js/lib/core"
import bash from "highlight.js/lib/languages/bash"
import cpp from "highlight.js/lib/languages/cpp"
import css from "highlight.js/lib/languages/css"
import diff from "highlight.js/lib/languages/diff"
import go from "highlight.js/lib/languages/go"
import ini from "highlight.js/lib/languages/ini"
import java from "highlight.js/lib/languages/java"
import javascript from "highlight.js/lib/languages/javascript"
import json from "highlight.js/lib/languages/json"
import markdown from "highlight.js/lib/languages/markdown"
import python from "highlight.js/lib/languages/python"
import rust from "highlight.js/lib/languages/rust"
import sql from "highlight.js/lib/languages/sql"
import typescript from "highlight.js/lib/languages/typescript"
import xml from "highlight.js/lib/languages/xml"
import yaml from "highlight.js/lib/languages/yaml"

const LANGUAGES = {
  bash, cpp, css, diff, go, ini, java, javascript, json, markdown, python, rust, sql, typescript,
  xml, yaml,
}
for (const [name, language] of Object.entries(LANGUAGES)) core.registerLanguage(name, language)

interface Branch {
  readonly scope?: string
  readonly children: readonly (Branch | string)[]
}

export type Highlighter = (text: string, language: string) => Node[] | undefined

export const highlighted: Highlighter = (text, language) => {
  if (core.getLanguage(language) === undefined) return undefined
  const result = core.highlight(text, { language, ignoreIllegals: true })
  const root = (result as unknown as { _emitter: { rootNode: Branch } })._emitter.rootNode
  return root.children.map(nodeOf)
}

function nodeOf(branch: Branch | string): Node {
  if (typeof branch === "string") return new Text(branch)
  const made = document.createElement("span")
  if (branch.scope !== undefined) made.className = `hl-${branch.scope.replace(/\W+/g, "-")}`
  made.append(...branch.children.map(nodeOf))
  return made
}
