// A new Session: where it works, and which model answers.

import type { AgentInfo, ModelInfo, ProjectInfo } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { attempt, client } from "../lib/api"
import { go, sessionHash } from "../lib/route"
import { ModelChoice } from "../parts/choices"

export function NewSession(): JSX.Element {
  const [directory, setDirectory] = useState("")
  const [projects, setProjects] = useState<readonly ProjectInfo[]>([])
  const [models, setModels] = useState<readonly ModelInfo[]>([])
  const [agents, setAgents] = useState<readonly AgentInfo[]>([])
  const [model, setModel] = useState("")
  const [agent, setAgent] = useState("")
  const [isBusy, setBusy] = useState(false)
  useEffect(() => {
    void attempt(() => client.locations.get()).then((found) => {
      setDirectory((now) => (now === "" ? (found?.directory ?? "") : now))
    })
    void attempt(() => client.projects.list()).then((found) => setProjects(found ?? []))
  }, [])
  useEffect(() => {
    if (!directory.startsWith("/")) return
    const timer = setTimeout(() => {
      // A directory that is still being typed is no Location; that is no failure.
      client.models.list({ directory }).then(setModels, () => setModels([]))
      client.agents.list({ directory }).then(setAgents, () => setAgents([]))
    }, 250)
    return () => clearTimeout(timer)
  }, [directory])
  const start = async (event: Event): Promise<void> => {
    event.preventDefault()
    setBusy(true)
    const [providerID = "", ...rest] = model.split("/")
    const made = await attempt(() =>
      client.sessions.create({
        location: { directory },
        ...(model === "" ? {} : { model: { providerID, id: rest.join("/") } }),
        ...(agent === "" ? {} : { agent }),
      }),
    )
    setBusy(false)
    if (made !== undefined) {
      go(sessionHash(made.id))
    }
  }
  const known = projects.flatMap((project) => project.directories.length > 0 ? project.directories : [project.directory])
  return (
    <div class="page narrow">
      <h1>New Session</h1>
      <form class="form" onSubmit={(event) => void start(event)}>
        <label>
          Directory
          <input
            value={directory}
            list="known-directories"
            required
            spellcheck={false}
            onInput={(event) => setDirectory(event.currentTarget.value)}
          />
          <datalist id="known-directories">
            {known.map((each) => <option key={each} value={each} />)}
          </datalist>
        </label>
        <div class="pair">
          <label>
            Model
            <ModelChoice models={models} value={model} empty="As configured" onChange={setModel} />
          </label>
          <label>
            Agent
            <select value={agent} onChange={(event) => setAgent(event.currentTarget.value)}>
              <option value="">As configured</option>
              {agents.filter((each) => !each.hidden && each.mode !== "subagent").map((each) => (
                <option key={each.id} value={each.id}>{each.id}</option>
              ))}
            </select>
          </label>
        </div>
        <button class="primary" disabled={isBusy}>Start</button>
      </form>
    </div>
  )
}
