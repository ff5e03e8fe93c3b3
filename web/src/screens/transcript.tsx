// The messages of a Session, as they are now or were at a moment.

import type { AssistantMessage, SessionMessage, UserMessage } from "perdure-client"
import type { ComponentChildren, JSX } from "preact"
import { memo } from "../lib/memo"
import { useState } from "preact/hooks"
import { clipped, clock, count, duration, money, moment, visible } from "../lib/format"
import { Icon, Chevron, type IconName } from "../parts/icons"
import { Markdown } from "../parts/markdown"
import { ToolCard } from "./tools"

export interface Actions {
  readonly fork: (messageID: string) => void
  readonly revert: (messageID: string) => void
}

/** Roughly how high a message is, before it was shown. */
export function estimateHeight(message: SessionMessage | undefined): number {
  if (message === undefined) return 60
  switch (message.type) {
    case "user":
      return 64 + Math.ceil(message.text.length / 80) * 24
    case "assistant": {
      let height = 36
      for (const part of message.content) {
        if (part.type === "tool") height += 46
        else if (part.type === "reasoning") height += 36
        else height += 16 + Math.ceil(part.text.length / 85) * 25
      }
      return height
    }
    default:
      return 44
  }
}

interface Props {
  readonly message: SessionMessage
  readonly isBusy: boolean
  readonly actions: Actions | undefined
}

export const Message = memo(
  (props: Props): JSX.Element | null => {
    const { message } = props
    switch (message.type) {
      case "user":
        return <User message={message} actions={props.actions} />
      case "assistant":
        return <Assistant message={message} isBusy={props.isBusy} />
      case "system":
        return <Note icon="eye" title="Context changed" text={message.text} time={message.time.created} />
      case "synthetic":
        return <Note icon="bolt" title="Notice" text={message.text} time={message.time.created} />
      case "shell":
        return (
          <section class="shell">
            <header><Icon name="terminal" size={14} /> <code>{visible(message.command)}</code></header>
            {message.output !== "" && <pre tabIndex={0}>{visible(clipped(message.output, 20_000))}</pre>}
          </section>
        )
      case "compaction":
        return (
          <Divider icon="list" title="Older messages were summarised">
            <Markdown text={message.summary} />
            {message.directives !== undefined && message.directives.length > 0 && (
              <>
                <h3>Your words, kept as they are</h3>
                <ul>{message.directives.map((each, at) => <li key={at}>{visible(each)}</li>)}</ul>
              </>
            )}
          </Divider>
        )
      case "agent-switched":
        return <p class="switch">Agent {visible(message.agent)}</p>
      case "model-switched":
        return <p class="switch">Model {visible(message.model.id)}{message.model.variant ? ` · ${visible(message.model.variant)}` : ""}</p>
      default:
        return null
    }
  },
  (before, after) =>
    before.message === after.message &&
    before.isBusy === after.isBusy &&
    (before.actions === undefined) === (after.actions === undefined),
)

function User(props: { message: UserMessage; actions: Actions | undefined }): JSX.Element {
  const { message, actions } = props
  return (
    <section class={message.time.excluded ? "user excluded" : "user"} aria-label="You">
      <div class="bubble"><Plain text={message.text} /></div>
      {message.files !== undefined && message.files.length > 0 && (
        <ul class="files">
          {message.files.map((file, at) => (
            <li key={at}><Icon name="file" size={13} /> {visible(file.name ?? file.uri.slice(0, 80))}</li>
          ))}
        </ul>
      )}
      <footer>
        {message.time.excluded !== undefined && <span>not sent to the model</span>}
        {actions !== undefined && (
          <span class="row-actions">
            <button class="link" onClick={() => actions.fork(message.id)}><Icon name="fork" size={13} /> Fork after this</button>
            <button class="link" onClick={() => actions.revert(message.id)}><Icon name="undo" size={13} /> Take back</button>
          </span>
        )}
        <time title={moment(message.time.created)}>{clock(message.time.created)}</time>
      </footer>
    </section>
  )
}

function Plain(props: { text: string }): JSX.Element {
  const [isWhole, setWhole] = useState(false)
  const max = 6_000
  const shown = isWhole ? props.text.slice(0, 200_000) : props.text.slice(0, max)
  return (
    <>
      <p class="plain" dir="auto">{visible(shown)}</p>
      {props.text.length > shown.length && (
        <button class="link" onClick={() => setWhole(true)}>Show {count(props.text.length - max)} more characters</button>
      )}
    </>
  )
}

function Assistant(props: { message: AssistantMessage; isBusy: boolean }): JSX.Element {
  const { message } = props
  const isOpen = message.time.completed === undefined
  return (
    <section class={message.time.excluded ? "assistant excluded" : "assistant"} aria-label="Agent" aria-busy={isOpen && props.isBusy}>
      {message.content.map((part, at) => {
        const key = `${part.type}/${part.id}/${at}`
        if (part.type === "text") {
          return part.text.trim() === "" ? null : <Markdown key={key} text={part.text} isOpen={part.cursor !== undefined} />
        }
        if (part.type === "reasoning") {
          return part.text.trim() === "" && part.cursor === undefined ? null : (
            <Reasoning
              key={key}
              text={part.text}
              isOpen={part.cursor !== undefined}
              millis={part.time?.completed === undefined ? undefined : part.time.completed - part.time.created}
            />
          )
        }
        return <ToolCard key={key} part={part} messageID={message.id} />
      })}
      {isOpen && props.isBusy && message.content.length === 0 && <p class="thinking"><span class="pulse" /> Waiting for the model</p>}
      {message.error !== undefined && (
        <p class="failure" role="alert"><Icon name="warn" size={15} /> {visible(message.error.message)}</p>
      )}
      {!isOpen && message.finish !== "tool-calls" && message.finish !== "error" && (
        <footer>
          <time title={moment(message.time.created)}>{clock(message.time.created)}</time>
          <span>{visible(message.model.id)}</span>
          <span>{duration(message.time.completed! - message.time.created)}</span>
          {message.tokens !== undefined && <span>{count(message.tokens.output)} tokens</span>}
          {(message.cost ?? 0) > 0 && <span>{money(message.cost!)}</span>}
        </footer>
      )}
    </section>
  )
}

function Reasoning(props: { text: string; isOpen: boolean; millis: number | undefined }): JSX.Element {
  const [isShown, setShown] = useState(false)
  const title = props.isOpen ? "Thinking" : props.millis === undefined ? "Thought" : `Thought for ${duration(props.millis)}`
  return (
    <div class="reasoning">
      <button class="fold" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
        <Chevron open={isShown} /> {title}
        {props.isOpen && <span class="pulse" />}
      </button>
      {isShown && <div class="reasoning-text"><Markdown text={props.text} isOpen={props.isOpen} /></div>}
    </div>
  )
}

function Note(props: { icon: IconName; title: string; text: string; time: number }): JSX.Element {
  const [isShown, setShown] = useState(false)
  const [first = ""] = props.text.trim().split("\n")
  return (
    <section class="note">
      <button class="fold" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
        <Icon name={props.icon} size={14} /> <strong>{props.title}</strong>
        {!isShown && <span class="first">{visible(first.slice(0, 120))}</span>}
      </button>
      {isShown && <pre class="wrap" tabIndex={0}>{visible(props.text)}</pre>}
    </section>
  )
}

function Divider(props: { icon: IconName; title: string; children: ComponentChildren }): JSX.Element {
  const [isShown, setShown] = useState(false)
  return (
    <section class="divider">
      <button class="fold" aria-expanded={isShown} onClick={() => setShown(!isShown)}>
        <Icon name={props.icon} size={14} /> {props.title} <Chevron open={isShown} />
      </button>
      {isShown && <div class="divider-body">{props.children}</div>}
    </section>
  )
}
