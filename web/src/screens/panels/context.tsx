// What the model is told: the sources, what is about to change, and the exact next request.

import type { ProviderContext, RequestMessage, RequestPart } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { client, messageOf } from "../../lib/api"
import { clipped, count, visible } from "../../lib/format"
import type { ShownSession } from "../../lib/session"
import { Fold } from "../../parts/fold"
import { Spinner } from "../../parts/icons"

export function ContextPanel(props: { session: ShownSession }): JSX.Element {
  const { session } = props
  const [found, setFound] = useState<ProviderContext | string | undefined>(undefined)
  const { seq } = session.view!
  useEffect(() => {
    let isWanted = true
    const timer = setTimeout(() => {
      client.sessions.providerContext({ sessionID: session.id }).then(
        (context) => isWanted && setFound(context),
        (error) => isWanted && setFound(messageOf(error)),
      )
    }, 250)
    return () => {
      isWanted = false
      clearTimeout(timer)
    }
  }, [seq, session.id])
  if (found === undefined) return <p class="pad"><Spinner /></p>
  if (typeof found === "string") return <p class="failure pad">{found}</p>
  const { window, request, pending, sourceDetails } = found
  return (
    <div class="panel-body">
      {window !== undefined && <Window tokens={window.tokens} max={window.requestMax ?? window.context} compacts={window.compacts} />}
      {found.refusal !== undefined && <p class="failure">{visible(found.refusal)}</p>}
      {pending !== undefined && pending.type !== "nothing" && (
        <section class="block">
          <h3>{PENDING[pending.type]}</h3>
          {pending.text !== undefined && <pre class="wrap" tabIndex={0}>{visible(clipped(pending.text, 4_000))}</pre>}
        </section>
      )}
      <section class="block">
        <h3>Sources <span class="quiet">{sourceDetails.length}</span></h3>
        <ul class="sources">
          {sourceDetails.map((source) => (
            <li key={source.key}>
              <Fold
                title={<code>{source.key}</code>}
                tags={[
                  ...(source.changed ? ["changed"] : []),
                  ...(source.available ? [] : ["not available"]),
                ]}
              >
                <pre class="wrap" tabIndex={0}>{visible(clipped(JSON.stringify(source.value ?? null, null, 2), 8_000))}</pre>
              </Fold>
            </li>
          ))}
        </ul>
      </section>
      {found.baseline !== undefined && (
        <section class="block">
          <Fold title="Baseline" note={`${count(found.baseline.length)} characters, as told once`}>
            <pre class="wrap" tabIndex={0}>{visible(found.baseline)}</pre>
          </Fold>
        </section>
      )}
      {request !== undefined && (
        <section class="block">
          <h3>Next request <span class="quiet">{request.model.providerID}/{request.model.id}</span></h3>
          <Fold title="Tools" note={String(request.tools.length)}>
            <ul class="sources">
              {request.tools.map((tool) => (
                <li key={tool.name}>
                  <Fold title={<code>{tool.name}</code>}>
                    <p class="plain quiet">{visible(tool.description)}</p>
                    <pre class="wrap" tabIndex={0}>{JSON.stringify(tool.inputSchema, null, 2)}</pre>
                  </Fold>
                </li>
              ))}
            </ul>
          </Fold>
          {request.system.map((text, at) => (
            <Fold key={at} title="System" note={`${count(text.length)} characters`}><pre class="wrap" tabIndex={0}>{visible(text)}</pre></Fold>
          ))}
          {request.messages.map((message, at) => <Sent key={at} message={message} />)}
        </section>
      )}
    </div>
  )
}

const PENDING = {
  baseline: "The next request begins with a new baseline",
  blocked: "The next request waits for its context",
  message: "The model is about to be told",
  nothing: "",
}

function Window(props: { tokens: number; max: number | undefined; compacts: boolean }): JSX.Element {
  const share = props.max === undefined ? undefined : Math.min(1, props.tokens / props.max)
  return (
    <section class="block window-use">
      <p>
        <strong>{count(props.tokens)}</strong> tokens
        {props.max !== undefined && <span class="quiet"> of {count(props.max)}, {Math.round(share! * 100)} %</span>}
      </p>
      {share !== undefined && (
        <div class="meter" role="meter" aria-label="Use of the context window" aria-valuenow={Math.round(share * 100)} aria-valuemin={0} aria-valuemax={100}>
          <span class={share > 0.85 ? "fill full" : "fill"} style={{ width: `${share * 100}%` }} />
        </div>
      )}
      {props.compacts && <p class="warn-text">Older messages are summarised before the next request.</p>}
    </section>
  )
}

function Sent(props: { message: RequestMessage }): JSX.Element {
  const texts = props.message.content.map(textOf)
  const first = texts.join(" ").trim().split("\n")[0] ?? ""
  return (
    <Fold title={<span class={`role of-${props.message.role}`}>{props.message.role}</span>} note={visible(first.slice(0, 60))}>
      {texts.map((text, at) => <pre class="wrap" key={at} tabIndex={0}>{visible(clipped(text, 20_000))}</pre>)}
    </Fold>
  )
}

function textOf(part: RequestPart): string {
  switch (part.type) {
    case "text":
    case "reasoning":
      return part.text
    case "tool-call":
      return `${part.name} ${JSON.stringify(part.input)}`
    case "tool-result":
      return typeof part.result === "string" ? part.result : JSON.stringify(part.result)
    default:
      return `[${part.mediaType}]`
  }
}
