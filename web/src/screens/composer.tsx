// Where prompts are written, and those that wait: edited, cancelled, put in another order.

import type { AdmittedPrompt } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { attempt, client, messageOf, tell } from "../lib/api"
import { visible } from "../lib/format"
import type { ShownSession } from "../lib/session"
import { ModelChoice } from "../parts/choices"
import { Icon } from "../parts/icons"

const draftKey = (id: string): string => `perdure.draft.${id}`

export function Composer(props: { session: ShownSession }): JSX.Element {
  const { session } = props
  session.version.value
  const view = session.view!
  const [text, setText] = useState(sessionStorage.getItem(draftKey(session.id)) ?? "")
  const [isBusy, setBusy] = useState(false)
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => {
    const element = area.current!
    element.style.height = "auto"
    element.style.height = `${Math.min(element.scrollHeight, 240)}px`
    if (text === "") sessionStorage.removeItem(draftKey(session.id))
    else sessionStorage.setItem(draftKey(session.id), text)
  }, [text])
  const send = async (delivery: "steer" | "queue"): Promise<void> => {
    const given = text.trim()
    if (given === "" || isBusy) return
    setBusy(true)
    try {
      await submit(session, given, delivery)
      setText("")
    } catch (error) {
      tell(messageOf(error))
    }
    setBusy(false)
    area.current?.focus()
  }
  const commands = /^\/\S*$/.test(text)
    ? session.commands.value.filter((each) => each.name.startsWith(text.slice(1))).slice(0, 6)
    : []
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault()
      void send(event.altKey ? "queue" : "steer")
    } else if (event.key === "Tab" && commands.length > 0 && !event.shiftKey) {
      event.preventDefault()
      setText(`/${commands[0]!.name} `)
    } else if (event.key === "Escape") {
      area.current!.blur()
    }
  }
  const { model, agent } = view.info
  return (
    <div class="composer">
      <Inbox session={session} />
      {commands.length > 0 && (
        <ul class="suggestions" aria-label="Commands">
          {commands.map((each) => (
            <li key={each.name}>
              <button onClick={() => { setText(`/${each.name} `); area.current!.focus() }}>
                <strong>/{each.name}</strong> <span class="quiet">{each.description}</span>
              </button>
            </li>
          ))}
        </ul>
      )}
      <form class="box" onSubmit={(event) => { event.preventDefault(); void send("steer") }}>
        <textarea
          id="prompt"
          ref={area}
          rows={1}
          value={text}
          dir="auto"
          placeholder={view.isBusy ? "Steer the work, or queue what comes next" : "What should be done? / for commands, ! for a shell command"}
          aria-label="Prompt"
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={onKeyDown}
        />
        <div class="bar">
          <ModelChoice
            label="Model"
            models={session.models.value}
            value={model === undefined ? "" : `${model.providerID}/${model.id}`}
            {...(model === undefined ? { empty: "Default model" } : {})}
            onChange={(value) => {
              const [providerID = "", ...rest] = value.split("/")
              if (rest.length > 0) void attempt(() => client.sessions.switchModel({ sessionID: session.id, model: { providerID, id: rest.join("/") } }))
            }}
          />
          <select
            aria-label="Agent"
            value={agent ?? ""}
            onChange={(event) => {
              const chosen = event.currentTarget.value
              void attempt(() => client.sessions.switchAgent({ sessionID: session.id, agent: chosen }))
            }}
          >
            {agent === undefined && <option value="">Default agent</option>}
            {agent !== undefined && !session.agents.value.some((each) => each.id === agent) && <option value={agent}>{agent}</option>}
            {session.agents.value.filter((each) => !each.hidden && each.mode !== "subagent").map((each) => (
              <option key={each.id} value={each.id}>{each.id}</option>
            ))}
          </select>
          <span class="spacer" />
          {view.isBusy && (
            <>
              <button type="button" class="quiet-button" disabled={text.trim() === "" || isBusy} onClick={() => void send("queue")} title="After this work (Alt Enter)">
                Queue
              </button>
              <button type="button" class="round stop" aria-label="Interrupt" title="Interrupt (Ctrl .)" onClick={() => void attempt(() => client.sessions.interrupt({ sessionID: session.id }))}>
                <Icon name="stop" />
              </button>
            </>
          )}
          <button class="round send" aria-label="Send" title="Send (Enter)" disabled={text.trim() === "" || isBusy}>
            <Icon name="up" />
          </button>
        </div>
      </form>
    </div>
  )
}

async function submit(session: ShownSession, text: string, delivery: "steer" | "queue"): Promise<void> {
  const sessionID = session.id
  if (text.startsWith("!")) {
    await client.sessions.shell({ sessionID, command: text.slice(1).trim() })
    return
  }
  const [name = "", ...rest] = text.startsWith("/") ? text.slice(1).split(" ") : []
  if (session.commands.value.some((each) => each.name === name)) {
    await client.sessions.command({ sessionID, command: name, arguments: rest.join(" ") })
    return
  }
  await client.sessions.prompt({ sessionID, prompt: { text }, delivery })
}

function Inbox(props: { session: ShownSession }): JSX.Element | null {
  const { session } = props
  const inbox = [...session.view!.inbox].sort((one, other) => Number(one.delivery === "queue") - Number(other.delivery === "queue"))
  if (inbox.length === 0) return null
  const move = (at: number, by: number): void => {
    const order = inbox.map((each) => each.id)
    const [moved] = order.splice(at, 1)
    order.splice(at + by, 0, moved!)
    void attempt(() => client.sessions.inbox.reorder({ sessionID: session.id, messageIDs: order }))
  }
  return (
    <section class="inbox" aria-label="Prompts that wait">
      {inbox.map((prompt, at) => (
        <Waiting
          key={prompt.id}
          prompt={prompt}
          up={at > 0 && inbox[at - 1]!.delivery === prompt.delivery ? () => move(at, -1) : undefined}
          down={at < inbox.length - 1 && inbox[at + 1]!.delivery === prompt.delivery ? () => move(at, 1) : undefined}
        />
      ))}
    </section>
  )
}

function Waiting(props: {
  prompt: AdmittedPrompt
  up: (() => void) | undefined
  down: (() => void) | undefined
}): JSX.Element {
  const { prompt } = props
  const [text, setText] = useState<string | undefined>(undefined)
  const ids = { sessionID: prompt.sessionID, messageID: prompt.id }
  const isQueued = prompt.delivery === "queue"
  if (text !== undefined) {
    const save = async (event: Event): Promise<void> => {
      event.preventDefault()
      const { files, agents } = prompt.prompt
      const kept = { ...(files === undefined ? {} : { files }), ...(agents === undefined ? {} : { agents }) }
      const done = await attempt(() => client.sessions.inbox.revise({ ...ids, prompt: { text, ...kept } }))
      if (done !== undefined) setText(undefined)
    }
    return (
      <form class="waiting-prompt editing" onSubmit={(event) => void save(event)}>
        <EditArea text={text} onInput={setText} onCancel={() => setText(undefined)} />
        <button class="small primary">Save</button>
        <button type="button" class="small" onClick={() => setText(undefined)}>Keep as it was</button>
      </form>
    )
  }
  return (
    <div class="waiting-prompt">
      <span class="tag">{isQueued ? "queued" : "steers"}</span>
      <span class="text"><bdi>{visible(prompt.prompt.text)}</bdi></span>
      <span class="row-actions">
        {props.up !== undefined && <button class="icon-button" aria-label="Earlier" title="Earlier" onClick={props.up}><Icon name="up" size={14} /></button>}
        {props.down !== undefined && <button class="icon-button" aria-label="Later" title="Later" onClick={props.down}><Icon name="down" size={14} /></button>}
        <button
          class="icon-button"
          aria-label={isQueued ? "Send into the work now" : "Put into the queue"}
          title={isQueued ? "Send into the work now" : "Put into the queue"}
          onClick={() => void attempt(() => client.sessions.inbox.revise({ ...ids, delivery: isQueued ? "steer" : "queue" }))}
        >
          <Icon name={isQueued ? "bolt" : "clock"} size={14} />
        </button>
        <button class="icon-button" aria-label="Edit" title="Edit" onClick={() => setText(prompt.prompt.text)}><Icon name="edit" size={14} /></button>
        <button class="icon-button" aria-label="Cancel" title="Cancel" onClick={() => void attempt(() => client.sessions.inbox.cancel(ids))}><Icon name="cross" size={14} /></button>
      </span>
    </div>
  )
}

function EditArea(props: { text: string; onInput: (text: string) => void; onCancel: () => void }): JSX.Element {
  const area = useRef<HTMLTextAreaElement>(null)
  useEffect(() => area.current?.focus(), [])
  return (
    <textarea
      ref={area}
      rows={3}
      aria-label="Edit the prompt"
      value={props.text}
      onInput={(event) => props.onInput(event.currentTarget.value)}
      onKeyDown={(event) => {
        if (event.key !== "Escape") return
        event.stopPropagation()
        props.onCancel()
      }}
    />
  )
}
