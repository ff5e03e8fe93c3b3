// What a Session has used: money and tokens by model and purpose, and how well the cache worked.

import type { AssistantMessage, SessionUsage, TokenUsage } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { attempt, client, messageOf } from "../../lib/api"
import { count, money, plural } from "../../lib/format"
import type { ShownSession } from "../../lib/session"
import { Spinner } from "../../parts/icons"

const PURPOSES = { turn: "turns", title: "titles", summary: "summaries" }

export function UsagePanel(props: { session: ShownSession }): JSX.Element {
  const { session } = props
  const view = session.view!
  const [usage, setUsage] = useState<SessionUsage | string | undefined>(undefined)
  const { cost, tokens } = view.info
  useEffect(() => {
    let isWanted = true
    client.sessions.usage({ sessionID: session.id }).then(
      (found) => isWanted && setUsage(found),
      (error) => isWanted && setUsage(messageOf(error)),
    )
    return () => {
      isWanted = false
    }
  }, [session.id, cost, tokens.output])
  if (usage === undefined) return <p class="pad"><Spinner /></p>
  if (typeof usage === "string") return <p class="failure pad">{usage}</p>
  const total = usage.tree
  const steps = [...view.messages].filter(
    (message): message is AssistantMessage => message.type === "assistant" && message.tokens !== undefined,
  )
  return (
    <div class="panel-body">
      <div class="figures">
        <Figure value={money(total.cost)} name="cost" />
        <Figure value={count(sum(total.tokens))} name="tokens" />
        <Figure value={String(total.turns)} name="turns" />
        <Figure value={`${Math.round(cached(total.tokens) * 100)} %`} name="of input from the cache" />
      </div>
      {total.turns !== usage.session.turns && (
        <p class="quiet">With its subagents; alone it is {money(usage.session.cost)} in {plural(usage.session.turns, "turn")}.</p>
      )}
      <section class="block">
        <h3>By model</h3>
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Usage by model">
          <table class="data">
            <thead><tr><th>Model</th><th>For</th><th>Requests</th><th>In</th><th>Cached</th><th>Out</th><th>Cost</th></tr></thead>
            <tbody>
              {total.models.map((each) => (
                <tr key={`${each.model.providerID}/${each.model.id}/${each.purpose}`}>
                  <td>{each.model.id}</td>
                  <td>{PURPOSES[each.purpose]}</td>
                  <td>{each.requests}</td>
                  <td>{count(each.tokens.input + each.tokens.cache.write)}</td>
                  <td>{count(each.tokens.cache.read)}</td>
                  <td>{count(each.tokens.output + each.tokens.reasoning)}</td>
                  <td>{money(each.cost)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      {steps.length > 0 && <Steps steps={steps.slice(-60)} />}
      <Budget session={session} usage={usage} />
    </div>
  )
}

function Figure(props: { value: string; name: string }): JSX.Element {
  return <p class="figure"><strong>{props.value}</strong><span>{props.name}</span></p>
}

/** The input of each turn: what came from the cache, and what had to be read anew. */
function Steps(props: { steps: readonly AssistantMessage[] }): JSX.Element {
  const highest = Math.max(...props.steps.map((step) => input(step.tokens!)), 1)
  return (
    <section class="block">
      <h3>Input of each turn</h3>
      <div class="bars" role="img" aria-label={`Input of the last ${props.steps.length} turns, up to ${count(highest)} tokens`}>
        {props.steps.map((step) => {
          const { input: fresh, cache } = step.tokens!
          const title = `${count(cache.read)} cached, ${count(cache.write)} written, ${count(fresh)} new`
          return (
            <span class="bar" key={step.id} title={title}>
              <span class="new" style={{ height: `${((fresh + cache.write) / highest) * 100}%` }} />
              <span class="cached" style={{ height: `${(cache.read / highest) * 100}%` }} />
            </span>
          )
        })}
      </div>
      <p class="legend"><span class="swatch cached" /> from the cache <span class="swatch new" /> new</p>
    </section>
  )
}

function Budget(props: { session: ShownSession; usage: SessionUsage }): JSX.Element {
  const { session, usage } = props
  const [cost, setCost] = useState(usage.budget?.cost === undefined ? "" : String(usage.budget.cost))
  const save = async (event: Event): Promise<void> => {
    event.preventDefault()
    const { tokens, turns } = usage.budget ?? {}
    const limit = cost.trim() === "" ? undefined : Number(cost)
    await attempt(() => client.sessions.setBudget({ sessionID: session.id, cost: limit, tokens, turns }))
  }
  return (
    <section class="block">
      <h3>Budget</h3>
      <form class="inline" onSubmit={(event) => void save(event)}>
        <label>At most $ <input inputMode="decimal" pattern="\d*\.?\d*" size={8} value={cost} placeholder="no limit" onInput={(event) => setCost(event.currentTarget.value)} /></label>
        <button class="small">Set</button>
      </form>
    </section>
  )
}

const input = (tokens: TokenUsage): number => tokens.input + tokens.cache.read + tokens.cache.write
const sum = (tokens: TokenUsage): number => input(tokens) + tokens.output + tokens.reasoning
const cached = (tokens: TokenUsage): number => (input(tokens) === 0 ? 0 : tokens.cache.read / input(tokens))
