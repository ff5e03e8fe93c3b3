// What else belongs to a Session: todos, subagents, background jobs.

import type { JobInfo, JobOutput, SessionInfo, Todo } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { attempt, client } from "../../lib/api"
import { ago, bytes, duration, money, visible } from "../../lib/format"
import { sessionHash } from "../../lib/route"
import type { ShownSession } from "../../lib/session"
import { isRunning, waitsIn } from "../../lib/sessions"
import { Chevron, Spinner } from "../../parts/icons"
import { TodoList } from "../../parts/todos"

export function WorkPanel(props: { session: ShownSession; todos: readonly Todo[] }): JSX.Element {
  const { session, todos } = props
  const [children, setChildren] = useState<readonly SessionInfo[]>([])
  const [jobs, setJobs] = useState<readonly JobInfo[]>([])
  const { seq } = session.view!
  useEffect(() => {
    let isWanted = true
    void attempt(() => client.sessions.children({ sessionID: session.id })).then((found) => isWanted && setChildren(found ?? []))
    void attempt(() => client.sessions.jobs.list({ sessionID: session.id })).then((found) => isWanted && setJobs(found ?? []))
    return () => {
      isWanted = false
    }
  }, [session.id, seq])
  return (
    <div class="panel-body">
      <section class="block">
        <h3>Todos</h3>
        {todos.length === 0 ? <p class="quiet">None.</p> : <TodoList todos={todos} />}
      </section>
      <section class="block">
        <h3>Subagents</h3>
        {children.length === 0 ? <p class="quiet">None.</p> : (
          <ul class="rows compact">
            {children.map((child) => (
              <li key={child.id}>
                <a href={sessionHash(child.id)}>
                  <span class="title">
                    {waitsIn(child.id) > 0 ? <span class="dot wait" role="img" aria-label="waits for you" /> : isRunning(child.id) && <Spinner />}
                    <bdi>{visible(child.title)}</bdi>
                  </span>
                  <span class="cost">{child.cost > 0 ? money(child.cost) : ""}</span>
                  <span class="when">{ago(child.time.updated)}</span>
                </a>
              </li>
            ))}
          </ul>
        )}
      </section>
      <section class="block">
        <h3>Jobs</h3>
        {jobs.length === 0 ? <p class="quiet">None.</p> : jobs.map((job) => <Job key={job.id} job={job} />)}
      </section>
    </div>
  )
}

function Job(props: { job: JobInfo }): JSX.Element {
  const { job } = props
  const [isOpen, setOpen] = useState(false)
  const [output, setOutput] = useState<JobOutput | undefined>(undefined)
  const ids = { sessionID: job.sessionID, jobID: job.id }
  const isLive = job.state === "running"
  useEffect(() => {
    if (!isOpen) return
    const look = (): void => void attempt(() => client.sessions.jobs.get(ids)).then((found) => found && setOutput(found))
    look()
    if (!isLive) return
    const timer = setInterval(look, 1_500)
    return () => clearInterval(timer)
  }, [isOpen, isLive])
  return (
    <div class="job">
      <button class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Chevron open={isOpen} />
        {isLive && <Spinner />}
        <code class="first">{visible(job.command)}</code>
        <span class={isLive || job.exitCode === 0 ? "tag" : "tag deleted"}>{job.exitCode === undefined ? job.state.replace("_", " ") : `exit ${job.exitCode}`}</span>
      </button>
      {isOpen && (
        <div class="fold-body">
          {output === undefined ? <Spinner /> : (
            <>
              <pre class="output" tabIndex={0}>{visible(output.output)}</pre>
              <p class="quiet">{bytes(output.bytes)}, {duration((job.time.ended ?? Date.now()) - job.time.started)}</p>
            </>
          )}
          {isLive && <button class="small danger" onClick={() => void attempt(() => client.sessions.jobs.cancel(ids))}>End it</button>}
        </div>
      )}
    </div>
  )
}
