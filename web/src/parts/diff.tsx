// Unified patches as people read them: files, hunks, lines with their numbers.

import type { JSX } from "preact"
import { useLayoutEffect, useRef, useState } from "preact/hooks"
import { highlightLater, languageOf } from "../lib/highlight"
import { visible } from "../lib/format"
import { Chevron } from "./icons"

interface Line {
  readonly kind: "add" | "del" | "same" | "hunk"
  readonly before: number | undefined
  readonly after: number | undefined
  readonly text: string
}

export interface FileChange {
  readonly path: string
  readonly status: string
  readonly additions: number
  readonly deletions: number
  readonly patch: string
}

const LINES_MAX = 400

export function parsePatch(patch: string): Line[] {
  const lines: Line[] = []
  let before = 0
  let after = 0
  let inHunk = false
  for (const line of patch.split("\n")) {
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)$/.exec(line)
    if (hunk !== null) {
      before = Number(hunk[1])
      after = Number(hunk[2])
      inHunk = true
      const text = `Line ${after}${hunk[3] ?? ""}`
      lines.push({ kind: "hunk", before: undefined, after: undefined, text })
    } else if (inHunk && line.startsWith("+")) {
      lines.push({ kind: "add", before: undefined, after: after++, text: line.slice(1) })
    } else if (inHunk && line.startsWith("-")) {
      lines.push({ kind: "del", before: before++, after: undefined, text: line.slice(1) })
    } else if (inHunk && line.startsWith(" ")) {
      lines.push({ kind: "same", before: before++, after: after++, text: line.slice(1) })
    } else if (inHunk && line.startsWith("\\")) {
      lines.push({ kind: "hunk", before: undefined, after: undefined, text: line.slice(2) })
    }
  }
  return lines
}

const SIGNS = { add: "+", del: "−", same: " ", hunk: "" }

export function Patch(props: { change: FileChange; all?: boolean }): JSX.Element {
  const [isWhole, setWhole] = useState(false)
  const lines = parsePatch(props.change.patch)
  const shown = props.all || isWhole ? lines : lines.slice(0, LINES_MAX)
  const language = languageOf(props.change.path)
  if (lines.length === 0) return <p class="quiet pad">No text to compare.</p>
  return (
    <div class="patch" tabIndex={0} role="region" aria-label={`Changes of ${props.change.path}`}>
      <table>
        <tbody>
          {shown.map((line, at) => (
            <tr key={at} class={line.kind}>
              {line.kind === "hunk" ? (
                <td colSpan={4} class="hunk">{visible(line.text)}</td>
              ) : (
                <>
                  <td class="num" aria-hidden="true">{line.before}</td>
                  <td class="num" aria-hidden="true">{line.after}</td>
                  <td class="sign" aria-label={line.kind === "add" ? "added" : line.kind === "del" ? "removed" : undefined}>
                    {SIGNS[line.kind]}
                  </td>
                  <td class="text"><Code text={visible(line.text)} language={language} /></td>
                </>
              )}
            </tr>
          ))}
        </tbody>
      </table>
      {shown.length < lines.length && (
        <button class="link pad" onClick={() => setWhole(true)}>
          Show {lines.length - shown.length} more lines
        </button>
      )}
    </div>
  )
}

export function Code(props: { text: string; language: string | undefined }): JSX.Element {
  const element = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    element.current!.replaceChildren(new Text(props.text))
    if (props.language !== undefined) highlightLater(element.current!, props.text, props.language)
  }, [props.text, props.language])
  return <code ref={element} />
}

export function Counts(props: { change: FileChange }): JSX.Element {
  return (
    <span class="counts">
      {props.change.additions > 0 && <span class="plus">+{props.change.additions}</span>}
      {props.change.deletions > 0 && <span class="minus">−{props.change.deletions}</span>}
    </span>
  )
}

export function FileDiffView(props: { change: FileChange; isOpen?: boolean }): JSX.Element {
  const [isOpen, setOpen] = useState(props.isOpen ?? true)
  return (
    <section class="file">
      <button class="file-head" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Chevron open={isOpen} />
        <span class="path" title={props.change.path}><bdi>{visible(props.change.path)}</bdi></span>
        {props.change.status !== "modified" && <span class={`tag ${props.change.status}`}>{props.change.status}</span>}
        <Counts change={props.change} />
      </button>
      {isOpen && <Patch change={props.change} />}
    </section>
  )
}
