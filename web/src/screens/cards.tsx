// What waits for a person: permission requests and questions, with everything that is needed to
// decide. The texts are the model's: they are shown as they are, with hidden characters spelled out.

import type { PermissionRequest, QuestionRequest } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { attempt, client } from "../lib/api"
import { plural, visible } from "../lib/format"
import { FileDiffView } from "../parts/diff"
import { Icon } from "../parts/icons"

export function RequestCard(props: {
  request: PermissionRequest | QuestionRequest
  sessionID: string
}): JSX.Element {
  return "questions" in props.request ? (
    <QuestionCard request={props.request} />
  ) : (
    <PermissionCard request={props.request} />
  )
}

const VERBS: Record<string, string> = {
  bash: "Run a command",
  edit: "Change files",
  write: "Write a file",
  read: "Read files",
  webfetch: "Fetch a page",
  websearch: "Search the web",
  task: "Start a subagent",
  external_directory: "Leave the project directory",
}

type Reach = "session" | "agent" | "project" | "global"

function PermissionCard(props: { request: PermissionRequest }): JSX.Element {
  const { request } = props
  const [isSure, setSure] = useState(false)
  const [isRefusing, setRefusing] = useState(false)
  const [reach, setReach] = useState<Reach>("project")
  const [reason, setReason] = useState("")
  const [isBusy, setBusy] = useState(false)
  const card = useRef<HTMLElement>(null)
  const metadata = (request.metadata ?? {}) as Record<string, unknown>
  const changes = request.changes ?? []
  const parts = partsOf(metadata)
  const reply = async (word: "once" | "always" | "reject"): Promise<void> => {
    setBusy(true)
    await attempt(() =>
      client.sessions.permissions.reply({
        sessionID: request.sessionID,
        requestID: request.id,
        reply: word,
        ...(word === "always" ? { scope: reach } : {}),
        ...(word === "reject" && reason !== "" ? { message: reason } : {}),
      }),
    )
    setBusy(false)
  }
  const onKeyDown = (event: KeyboardEvent): void => {
    if (/^(INPUT|SELECT|TEXTAREA)$/.test((event.target as HTMLElement).tagName)) return
    if (event.ctrlKey || event.metaKey || event.altKey || isBusy) return
    if (event.key === "a") void reply("once")
    else if (event.key === "s" && request.save !== undefined) setSure(true)
    else if (event.key === "d") setRefusing(true)
    else return
    event.preventDefault()
    event.stopPropagation()
  }
  return (
    <section
      class="card request"
      ref={card}
      tabIndex={0}
      aria-label={`Permission: ${request.action}`}
      onKeyDown={onKeyDown}
    >
      <header>
        <Icon name={request.action === "bash" ? "terminal" : changes.length > 0 ? "edit" : "warn"} />
        <h3>{VERBS[request.action] ?? visible(request.action)}</h3>
        {metadata.protected === true && <span class="tag warn">asked in any case</span>}
      </header>
      {metadata.protected === true && typeof metadata.reason === "string" && (
        <p class="quiet">{visible(metadata.reason)}</p>
      )}
      {changes.length > 0 ? (
        changes.map((change) => <FileDiffView key={change.path} change={change} />)
      ) : (
        <ul class="resources">
          {request.resources.map((resource) => (
            <li key={resource}><code dir="ltr">{visible(resource)}</code></li>
          ))}
        </ul>
      )}
      {parts.length > 1 && (
        <div class="parts">
          <p class="quiet">It runs {parts.length} things:</p>
          <ol>{parts.map((part, at) => <li key={at}><code dir="ltr">{visible(part)}</code></li>)}</ol>
        </div>
      )}
      {(request.notes ?? []).map((note) => <p class="unusual" key={note}><Icon name="warn" size={14} /> {note}</p>)}
      {typeof metadata.workdir === "string" && <p class="quiet">in <code>{visible(metadata.workdir)}</code></p>}
      {isSure ? (
        <div class="always">
          <p>Allow from now on, without a question:</p>
          <ul class="resources">
            {request.save!.map((pattern) => (
              <li key={pattern}><code>{pattern === "*" ? `* (every ${request.action})` : visible(pattern)}</code></li>
            ))}
          </ul>
          <label>
            for{" "}
            <select value={reach} onChange={(event) => setReach(event.currentTarget.value as Reach)}>
              <option value="session">this Session</option>
              <option value="agent">this agent in this project</option>
              <option value="project">this project</option>
              <option value="global">every project</option>
            </select>
          </label>
          <div class="actions">
            <button class="primary" disabled={isBusy} onClick={() => void reply("always")}>Always allow</button>
            <button disabled={isBusy} onClick={() => setSure(false)}>Back</button>
          </div>
        </div>
      ) : isRefusing ? (
        <form class="refusal" onSubmit={(event) => { event.preventDefault(); void reply("reject") }}>
          <Focused placeholder="What should it do instead? (optional)" label="Reason" value={reason} onInput={setReason} />
          <div class="actions">
            <button class="danger" disabled={isBusy}>Refuse</button>
            <button type="button" disabled={isBusy} onClick={() => setRefusing(false)}>Back</button>
          </div>
        </form>
      ) : (
        <div class="actions">
          <button class="primary" disabled={isBusy} onClick={() => void reply("once")}>Allow once <kbd>a</kbd></button>
          {request.save !== undefined && (
            <button disabled={isBusy} onClick={() => setSure(true)}>Always… <kbd>s</kbd></button>
          )}
          <button disabled={isBusy} onClick={() => setRefusing(true)}>Refuse… <kbd>d</kbd></button>
        </div>
      )}
    </section>
  )
}

function partsOf(metadata: Record<string, unknown>): readonly string[] {
  if (!Array.isArray(metadata.parts)) return []
  return metadata.parts.map((part) => part?.text).filter((text) => typeof text === "string")
}

function Focused(props: { placeholder: string; label: string; value: string; onInput: (text: string) => void }): JSX.Element {
  const element = useRef<HTMLInputElement>(null)
  useEffect(() => element.current?.focus(), [])
  return (
    <input
      ref={element}
      aria-label={props.label}
      placeholder={props.placeholder}
      value={props.value}
      onInput={(event) => props.onInput(event.currentTarget.value)}
    />
  )
}

function QuestionCard(props: { request: QuestionRequest }): JSX.Element {
  const { request } = props
  const [chosen, setChosen] = useState<readonly (readonly string[])[]>(request.questions.map(() => []))
  const [typed, setTyped] = useState<readonly string[]>(request.questions.map(() => ""))
  const [isBusy, setBusy] = useState(false)
  const answers = request.questions.map((_, at) => {
    const own = typed[at]!.trim()
    return own === "" ? chosen[at]! : [...chosen[at]!, own]
  })
  const isComplete = answers.every((each) => each.length > 0)
  const toggle = (at: number, label: string): void => {
    const isMany = request.questions[at]!.multiple === true
    const now = chosen[at]!
    const after = now.includes(label)
      ? now.filter((each) => each !== label)
      : isMany ? [...now, label] : [label]
    setChosen(chosen.map((each, place) => (place === at ? after : each)))
  }
  const send = async (work: () => Promise<void>): Promise<void> => {
    setBusy(true)
    await attempt(work)
    setBusy(false)
  }
  const ids = { sessionID: request.sessionID, requestID: request.id }
  return (
    <form
      class="card request question"
      aria-label="Question"
      onSubmit={(event) => {
        event.preventDefault()
        void send(() => client.sessions.questions.reply({ ...ids, answers }))
      }}
    >
      <header>
        <Icon name="chat" />
        <h3>{request.questions.length === 1 ? visible(request.questions[0]!.header) : plural(request.questions.length, "question")}</h3>
      </header>
      {request.questions.map((question, at) => (
        <fieldset key={at}>
          <legend><bdi>{visible(question.question)}</bdi></legend>
          {question.options.map((option) => (
            <label class="option" key={option.label}>
              <input
                type={question.multiple ? "checkbox" : "radio"}
                name={`${request.id}-${at}`}
                checked={chosen[at]!.includes(option.label)}
                onChange={() => toggle(at, option.label)}
              />
              <span><strong><bdi>{visible(option.label)}</bdi></strong> <span class="quiet">{visible(option.description)}</span></span>
            </label>
          ))}
          {question.custom !== false && (
            <input
              class="own"
              placeholder={question.options.length > 0 ? "Or in your own words" : "Your answer"}
              aria-label="Your own answer"
              value={typed[at]}
              onInput={(event) => {
                const text = event.currentTarget.value
                setTyped(typed.map((each, place) => (place === at ? text : each)))
                if (!question.multiple && text !== "") setChosen(chosen.map((each, place) => (place === at ? [] : each)))
              }}
            />
          )}
        </fieldset>
      ))}
      <div class="actions">
        <button class="primary" disabled={isBusy || !isComplete}>Answer</button>
        <button type="button" disabled={isBusy} onClick={() => void send(() => client.sessions.questions.reject(ids))}>
          Answer nothing, and stop
        </button>
      </div>
    </form>
  )
}
