// What applies in a directory: models, logins, trust, MCP servers, saved approvals.

import type {
  IntegrationInfo,
  McpServerInfo,
  ModelInfo,
  ProjectInfo,
  SavedRule,
  TrustInfo,
} from "perdure-client"
import type { ComponentChildren, JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { attempt, client } from "../lib/api"
import { count, plural, visible } from "../lib/format"
import { listen } from "../lib/stream"
import { Icon } from "../parts/icons"
import { Login } from "../parts/login"

export function SettingsScreen(): JSX.Element {
  const [directory, setDirectory] = useState("")
  const [projects, setProjects] = useState<readonly ProjectInfo[]>([])
  const [found, setFound] = useState<Found | undefined>(undefined)
  const [version, setVersion] = useState(0)
  const again = (): void => setVersion((now) => now + 1)
  useEffect(() => {
    void attempt(() => client.locations.get()).then((at) => setDirectory((now) => now || (at?.directory ?? "")))
    void attempt(() => client.projects.list()).then((list) => setProjects(list ?? []))
    return listen((events) => {
      if (events.some((event) => /^(mcp|integration|catalog|location\.trust)\./.test(event.type))) again()
    })
  }, [])
  useEffect(() => {
    if (directory === "") return
    let isWanted = true
    void load(directory).then((loaded) => isWanted && setFound(loaded))
    return () => {
      isWanted = false
    }
  }, [directory, version])
  const places = [...new Set([directory, ...projects.map((project) => project.directory)])].filter((each) => each !== "" && each !== "/")
  return (
    <div class="page">
      <header class="page-head">
        <h1>Settings</h1>
        <label class="inline">
          in{" "}
          <select value={directory} onChange={(event) => setDirectory(event.currentTarget.value)}>
            {places.map((each) => <option key={each} value={each}>{each}</option>)}
          </select>
        </label>
      </header>
      {found !== undefined && (
        <>
          <Trust trust={found.trust} directory={directory} />
          <Logins integrations={found.integrations} directory={directory} onChange={again} />
          <Models models={found.models} standard={found.standard} />
          <Mcp servers={found.mcp} directory={directory} onChange={again} />
          <Saved rules={found.saved} onChange={again} />
        </>
      )}
    </div>
  )
}

interface Found {
  readonly trust: TrustInfo | undefined
  readonly integrations: readonly IntegrationInfo[]
  readonly models: readonly ModelInfo[]
  readonly standard: string | undefined
  readonly mcp: readonly McpServerInfo[]
  readonly saved: readonly SavedRule[]
}

async function load(directory: string): Promise<Found> {
  const [trust, integrations, models, standard, mcp, saved] = await Promise.all([
    attempt(() => client.locations.trust({ directory })),
    attempt(() => client.integrations.list({ directory })),
    attempt(() => client.models.list({ directory })),
    attempt(() => client.models.default({ directory })),
    attempt(() => client.mcp.list({ directory })),
    attempt(() => client.permissions.saved({ directory })),
  ])
  const model = standard?.model
  return {
    trust,
    integrations: integrations ?? [],
    models: models ?? [],
    standard: model === undefined ? undefined : `${model.providerID}/${model.id}`,
    mcp: mcp ?? [],
    saved: saved ?? [],
  }
}

function Section(props: { title: string; note?: string; children: ComponentChildren }): JSX.Element {
  return (
    <section class="block">
      <h2>{props.title} {props.note !== undefined && <span class="quiet">{props.note}</span>}</h2>
      {props.children}
    </section>
  )
}

function Trust(props: { trust: TrustInfo | undefined; directory: string }): JSX.Element | null {
  const { trust } = props
  if (trust === undefined) return null
  return (
    <Section title="Trust">
      {trust.trusted ? (
        <p class="verdict good"><Icon name="check" /> All that the configuration of this project asks for counts.</p>
      ) : (
        <>
          <p class="verdict warn"><Icon name="warn" /> The configuration asks for this, and it does not count until you allow it:</p>
          <ul class="wishes">
            {trust.off.map((wish, at) => (
              <li key={at}><span class="tag">{wish.kind}</span> {visible(wish.message)} <code class="quiet">{visible(wish.path)}</code></li>
            ))}
          </ul>
          <p class="quiet">Run <code>perdure trust</code> in the directory to look at all of it and allow it.</p>
        </>
      )}
    </Section>
  )
}

function Logins(props: { integrations: readonly IntegrationInfo[]; directory: string; onChange: () => void }): JSX.Element {
  const [chosen, setChosen] = useState<IntegrationInfo | undefined>(undefined)
  const [wanted, setWanted] = useState("")
  const connected = props.integrations.filter((each) => each.connections.length > 0)
  const word = wanted.trim().toLowerCase()
  const others = props.integrations.filter(
    (each) => each.connections.length === 0 && word !== "" && `${each.name} ${each.id}`.toLowerCase().includes(word),
  )
  const disconnect = async (id: string): Promise<void> => {
    await attempt(() => client.credentials.remove({ credentialID: id, directory: props.directory }))
    props.onChange()
  }
  return (
    <Section title="Logins" note={String(connected.length)}>
      <ul class="items">
        {connected.map((each) => (
          <li key={each.id}>
            <strong>{each.name}</strong>
            {each.connections.map((connection, at) =>
              connection.type === "env" ? (
                <span class="tag" key={at}>{connection.name}</span>
              ) : (
                <span class="tag" key={at}>
                  {connection.label}
                  <button class="icon-button tiny" aria-label={`Log out of ${each.name}`} title="Log out" onClick={() => void disconnect(connection.id)}><Icon name="cross" size={11} /></button>
                </span>
              ),
            )}
            <span class="spacer" />
            <button class="small" onClick={() => setChosen(each)}>Add another</button>
          </li>
        ))}
      </ul>
      <label class="search">
        <Icon name="search" size={15} />
        <input type="search" placeholder="Find a provider to connect" aria-label="Find a provider" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
      </label>
      <ul class="items">
        {others.slice(0, 8).map((each) => (
          <li key={each.id}><strong>{each.name}</strong><span class="spacer" /><button class="small" onClick={() => setChosen(each)}>Connect</button></li>
        ))}
      </ul>
      {chosen !== undefined && (
        <Login
          integration={chosen}
          directory={props.directory}
          onClose={() => {
            setChosen(undefined)
            props.onChange()
          }}
        />
      )}
    </Section>
  )
}

function Models(props: { models: readonly ModelInfo[]; standard: string | undefined }): JSX.Element {
  const [wanted, setWanted] = useState("")
  const word = wanted.trim().toLowerCase()
  const enabled = props.models.filter((each) => each.enabled)
  const shown = enabled.filter((each) => `${each.providerID}/${each.id} ${each.name}`.toLowerCase().includes(word))
  return (
    <Section title="Models" note={String(enabled.length)}>
      {enabled.length > 10 && (
        <label class="search">
          <Icon name="search" size={15} />
          <input type="search" placeholder="Search models" aria-label="Search models" value={wanted} onInput={(event) => setWanted(event.currentTarget.value)} />
        </label>
      )}
      <div class="scroll-x" tabIndex={0} role="region" aria-label="Models">
        <table class="data">
          <thead><tr><th>Model</th><th>Context</th><th>$ in</th><th>$ out</th><th>Takes</th></tr></thead>
          <tbody>
            {shown.slice(0, 40).map((each) => (
              <tr key={`${each.providerID}/${each.id}`}>
                <td>{each.name} <span class="quiet">{each.providerID}</span> {`${each.providerID}/${each.id}` === props.standard && <span class="tag">default</span>}</td>
                <td>{count(each.limit.context)}</td>
                <td>{each.cost[0]?.input ?? ""}</td>
                <td>{each.cost[0]?.output ?? ""}</td>
                <td>{each.capabilities.input.join(", ")}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {shown.length > 40 && <p class="quiet">and {shown.length - 40} more</p>}
    </Section>
  )
}

function Mcp(props: { servers: readonly McpServerInfo[]; directory: string; onChange: () => void }): JSX.Element {
  const act = async (work: () => Promise<unknown>): Promise<void> => {
    await attempt(work)
    props.onChange()
  }
  return (
    <Section title="MCP servers" note={String(props.servers.length)}>
      {props.servers.length === 0 && <p class="quiet">None is configured. <code>perdure mcp add</code> adds one.</p>}
      <ul class="items">
        {props.servers.map((server) => (
          <li key={server.name}>
            <strong>{visible(server.name)}</strong>
            <span class={`tag ${server.status === "connected" ? "added" : server.status === "failed" ? "deleted" : ""}`}>{server.status.replace("_", " ")}</span>
            {server.tools !== undefined && <span class="quiet">{plural(server.tools.length, "tool")}</span>}
            {server.error !== undefined && <span class="failure inline">{visible(server.error)}</span>}
            <span class="spacer" />
            {server.status !== "disabled" && server.status !== "untrusted" && (
              <button class="small" onClick={() => void act(() => client.mcp.restart({ name: server.name, directory: props.directory }))}>Start again</button>
            )}
          </li>
        ))}
      </ul>
    </Section>
  )
}

function Saved(props: { rules: readonly SavedRule[]; onChange: () => void }): JSX.Element {
  const forget = async (id: string): Promise<void> => {
    await attempt(() => client.permissions.removeSaved({ id }))
    props.onChange()
  }
  return (
    <Section title="Allowed for good" note={String(props.rules.length)}>
      {props.rules.length === 0 && <p class="quiet">Nothing. What you always allow is listed here.</p>}
      <ul class="items">
        {props.rules.map((rule) => (
          <li key={rule.id}>
            <span class="tag">{visible(rule.action)}</span> <code>{visible(rule.resource)}</code>
            {rule.scope !== undefined && <span class="quiet">{rule.scope}</span>}
            <span class="spacer" />
            <button class="small" onClick={() => void forget(rule.id)}>Ask again</button>
          </li>
        ))}
      </ul>
    </Section>
  )
}
