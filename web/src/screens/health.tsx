// How the server is doing.

import type { HealthDetail } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { client, messageOf } from "../lib/api"
import { bytes, duration, moment, visible } from "../lib/format"
import { Icon, Spinner } from "../parts/icons"

export function HealthScreen(): JSX.Element {
  const [health, setHealth] = useState<HealthDetail | string | undefined>(undefined)
  useEffect(() => {
    const look = (): void => void client.health.detail().then(setHealth, (error) => setHealth(messageOf(error)))
    look()
    const timer = setInterval(() => !document.hidden && look(), 3_000)
    return () => clearInterval(timer)
  }, [])
  if (health === undefined) return <div class="page loading"><Spinner /></div>
  if (typeof health === "string") return <div class="page"><h1>Health</h1><p class="failure">{health}</p></div>
  const { process, database } = health
  return (
    <div class="page">
      <h1>Health</h1>
      <p class={health.healthy ? "verdict good" : "verdict bad"}>
        <Icon name={health.healthy ? "check" : "warn"} /> {health.healthy ? "All is well." : "Something is wrong."}
      </p>
      {health.problems.map((problem, at) => <p class="failure" key={at}>{visible(problem)}</p>)}
      <div class="figures">
        <p class="figure"><strong>{health.running}</strong><span>Sessions run</span></p>
        <p class="figure"><strong>{bytes(process.residentBytes)}</strong><span>memory</span></p>
        <p class="figure"><strong>{process.openFiles}</strong><span>open files</span></p>
        <p class="figure"><strong>{bytes(database.bytes)}</strong><span>database</span></p>
      </div>
      <section class="block">
        <h2>Durations</h2>
        <div class="scroll-x" tabIndex={0} role="region" aria-label="Durations">
          <table class="data">
            <thead><tr><th>What</th><th>Count</th><th>Half below</th><th>99 % below</th><th>Longest</th></tr></thead>
            <tbody>
              {Object.entries(health.durations).map(([name, each]) => (
                <tr key={name}>
                  <td>{name}</td><td>{each.count}</td><td>{duration(each.p50)}</td><td>{duration(each.p99)}</td><td>{duration(each.longest)}</td>
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      </section>
      <section class="block">
        <h2>Process</h2>
        <dl class="facts">
          <dt>Version</dt><dd>{health.version}</dd>
          <dt>Process</dt><dd>{process.pid}, since {moment(process.started)}</dd>
          <dt>Database</dt><dd><code>{database.path}</code>, log {bytes(database.logBytes)}</dd>
          {health.silent.length > 0 && <><dt>Do not respond</dt><dd>{health.silent.join(", ")}</dd></>}
        </dl>
      </section>
    </div>
  )
}
