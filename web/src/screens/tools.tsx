// A tool call as a card, by its kind: what it was asked to do in one line, and what came of it below.

import type { ToolContent, ToolPart } from "perdure-client"
import type { ComponentChildren, JSX } from "preact"
import { useState } from "preact/hooks"
import { clipped, duration, visible } from "../lib/format"
import { sessionHash } from "../lib/route"
import { Code, Counts, type FileChange, FileDiffView } from "../parts/diff"
import { languageOf } from "../lib/highlight"
import { Chevron, Icon, type IconName, Spinner } from "../parts/icons"
import { Markdown } from "../parts/markdown"
import { TodoList } from "../parts/todos"

const OUTPUT_MAX = 20_000

type Input = Record<string, any>

interface Kind {
  readonly icon: IconName
  readonly title: string
  readonly about: (input: Input) => string
  readonly isCode?: boolean
  readonly isOpen?: boolean
}

const text = (value: unknown): string => (typeof value === "string" ? value : "")

const KINDS: Record<string, Kind> = {
  bash: { icon: "terminal", title: "Run", about: (input) => text(input.command), isCode: true },
  read: { icon: "file", title: "Read", about: (input) => text(input.path) + lines(input), isCode: true },
  write: { icon: "edit", title: "Write", about: (input) => text(input.path), isCode: true, isOpen: true },
  edit: { icon: "edit", title: "Edit", about: (input) => text(input.path), isCode: true, isOpen: true },
  apply_patch: { icon: "edit", title: "Patch", about: () => "", isOpen: true },
  grep: { icon: "search", title: "Search", about: (input) => text(input.pattern), isCode: true },
  glob: { icon: "search", title: "Find", about: (input) => text(input.pattern), isCode: true },
  webfetch: { icon: "globe", title: "Fetch", about: (input) => text(input.url), isCode: true },
  websearch: { icon: "globe", title: "Search the web", about: (input) => text(input.query) },
  task: { icon: "people", title: "Subagent", about: (input) => text(input.description) },
  todowrite: { icon: "list", title: "Todos", about: (input) => todoCount(input), isOpen: true },
  question: { icon: "chat", title: "Question", about: (input) => text(input.questions?.[0]?.question), isOpen: true },
  skill: { icon: "bolt", title: "Skill", about: (input) => text(input.name) },
}

function lines(input: Input): string {
  if (typeof input.offset !== "number") return ""
  return `:${input.offset}${typeof input.limit === "number" ? `-${input.offset + input.limit - 1}` : ""}`
}

function todoCount(input: Input): string {
  const todos: readonly { status?: string }[] = Array.isArray(input.todos) ? input.todos : []
  return `${todos.filter((each) => each.status === "completed").length} of ${todos.length} done`
}

export function ToolCard(props: { part: ToolPart; messageID: string }): JSX.Element {
  const { part } = props
  const { state } = part
  const kind = KINDS[part.name]
  const changes = changesOf(part)
  const [isOpen, setOpen] = useState<boolean | undefined>(undefined)
  const isShown = isOpen ?? (changes.length > 0 || (kind?.isOpen === true && state.status !== "error"))
  const input: Input = state.status === "pending" ? {} : state.input
  const about = state.status === "pending" ? preview(state.input) : (kind?.about(input) ?? summary(input))
  const ended = part.time.completed
  return (
    <section class={`tool ${state.status}`} aria-label={`Tool ${part.name}`}>
      <button class="fold" aria-expanded={isShown} onClick={() => setOpen(!isShown)}>
        <span class="tool-icon">
          {state.status === "running" || state.status === "pending" ? <Spinner /> : <Icon name={state.status === "error" ? "warn" : (kind?.icon ?? "tool")} size={15} />}
        </span>
        <span class="tool-name">{kind?.title ?? visible(part.name)}</span>
        <span class={kind?.isCode ? "about code" : "about"}><bdi>{visible(about.slice(0, 300))}</bdi></span>
        {changes.length === 1 && <Counts change={changes[0]!} />}
        {exitOf(part) !== undefined && <span class="tag deleted">exit {exitOf(part)}</span>}
        {part.time.pruned !== undefined && <span class="tag">pruned</span>}
        {part.time.excluded !== undefined && <span class="tag">not sent</span>}
        {ended !== undefined && part.time.ran !== undefined && ended - part.time.ran > 1_000 && (
          <span class="took">{duration(ended - part.time.ran)}</span>
        )}
        <Chevron open={isShown} />
      </button>
      {isShown && <div class="tool-body"><Body part={part} changes={changes} input={input} /></div>}
    </section>
  )
}

function Body(props: { part: ToolPart; changes: readonly FileChange[]; input: Input }): JSX.Element {
  const { part, changes, input } = props
  const { state } = part
  const output = state.status === "pending" ? "" : textOf(state.content)
  const failure = state.status === "error" ? <p class="failure">{visible(state.error.message)}</p> : null
  let body: ComponentChildren
  if (changes.length > 0) {
    body = changes.map((change) => <FileDiffView key={change.path} change={change} />)
  } else if (state.status === "pending") {
    body = <pre tabIndex={0}>{visible(clipped(state.input, 4_000))}</pre>
  } else if (part.name === "bash") {
    body = (
      <>
        <pre class="command" tabIndex={0}><Code text={visible(text(input.command))} language="bash" /></pre>
        {output !== "" && <Output text={output} />}
      </>
    )
  } else if (part.name === "todowrite" && Array.isArray(input.todos)) {
    body = <TodoList todos={input.todos} />
  } else if (part.name === "task") {
    body = <Task input={input} output={output} part={part} />
  } else if (part.name === "question") {
    body = <Asked input={input} output={output} />
  } else if (part.name === "read") {
    body = <ReadOutput text={output} path={text(input.path)} />
  } else if (part.name === "write" && state.status !== "error") {
    body = <pre tabIndex={0}><Code text={visible(clipped(text(input.content), OUTPUT_MAX))} language={languageOf(text(input.path))} /></pre>
  } else {
    body = (
      <>
        {KINDS[part.name] === undefined && <pre class="command" tabIndex={0}><Code text={visible(JSON.stringify(input, null, 2))} language="json" /></pre>}
        {output !== "" && <Output text={output} />}
      </>
    )
  }
  const images = state.status === "pending" ? [] : state.content.filter((each) => each.type === "file")
  return (
    <>
      {failure}
      {body}
      {images.map((each, at) => <Attachment key={at} content={each} />)}
    </>
  )
}

function Output(props: { text: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false)
  const shown = isWhole ? props.text.slice(0, 500_000) : clipped(props.text, OUTPUT_MAX)
  return (
    <>
      <pre class="output" tabIndex={0} role="region" aria-label="Output">{visible(shown)}</pre>
      {!isWhole && props.text.length > OUTPUT_MAX && <button class="link pad" onClick={() => setWhole(true)}>Show all of it</button>}
    </>
  )
}

function ReadOutput(props: { text: string; path: string }): JSX.Element {
  return (
    <pre class="output" tabIndex={0} role="region" aria-label={`Content of ${props.path}`}>
      <Code text={visible(clipped(props.text, OUTPUT_MAX))} language={languageOf(props.path)} />
    </pre>
  )
}

function Task(props: { input: Input; output: string; part: ToolPart }): JSX.Element {
  const { state } = props.part
  const structured: Input = state.status === "pending" ? {} : (state.structured as Input)
  const child = structured.sessionID ?? structured.session
  return (
    <div class="pad">
      {typeof props.input.prompt === "string" && <p class="plain quiet">{visible(clipped(props.input.prompt, 2_000))}</p>}
      {typeof child === "string" && child.startsWith("ses_") && <p><a href={sessionHash(child)}>Open its Session</a></p>}
      {props.output !== "" && <Markdown text={clipped(props.output, OUTPUT_MAX)} />}
    </div>
  )
}

function Asked(props: { input: Input; output: string }): JSX.Element {
  const questions: readonly Input[] = Array.isArray(props.input.questions) ? props.input.questions : []
  return (
    <div class="pad">
      {questions.map((each, at) => <p key={at}><strong>{visible(text(each.question))}</strong></p>)}
      {props.output !== "" && <p class="plain">{visible(props.output)}</p>}
    </div>
  )
}

function Attachment(props: { content: ToolContent }): JSX.Element | null {
  const { content } = props
  if (content.type !== "file") return null
  const isPicture = /^data:image\/(png|jpeg|gif|webp);base64,[A-Za-z0-9+/=]+$/.test(content.uri.slice(0, 100_000_000))
  if (isPicture) return <img class="picture" src={content.uri} alt={visible(content.name ?? "a picture")} />
  return <p class="pad"><Icon name="file" size={13} /> {visible(content.name ?? content.mime)}</p>
}

export function textOf(content: readonly ToolContent[]): string {
  return content.map((each) => (each.type === "text" ? each.text : "")).join("")
}

function changesOf(part: ToolPart): readonly FileChange[] {
  if (part.state.status !== "completed") return []
  const files = (part.state.structured as Input).files
  if (!Array.isArray(files)) return []
  return files.filter((each) => typeof each?.patch === "string" && typeof each.path === "string")
}

function exitOf(part: ToolPart): number | undefined {
  if (part.state.status !== "completed") return undefined
  const { exit } = part.state.structured as Input
  return typeof exit === "number" && exit !== 0 ? exit : undefined
}

/** What of an input that is still written can be told. */
function preview(raw: string): string {
  const found = /"(?:command|path|pattern|url|query|description)"\s*:\s*"((?:[^"\\]|\\.){0,200})/.exec(raw)
  return found?.[1] ?? ""
}

function summary(input: Input): string {
  const first = Object.values(input).find((value) => typeof value === "string" && value !== "")
  return text(first).split("\n")[0] ?? ""
}
