// Terminals of a directory, in the page.

import type { PtyInfo } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useRef, useState } from "preact/hooks"
import { attempt, client } from "../lib/api"
import { shortPath, visible } from "../lib/format"
import { listen } from "../lib/stream"
import { Icon, Spinner } from "../parts/icons"

export function TerminalScreen(): JSX.Element {
  const [terminals, setTerminals] = useState<readonly PtyInfo[] | undefined>(undefined)
  const [chosen, setChosen] = useState<string | undefined>(undefined)
  const load = async (): Promise<void> => {
    const found = await attempt(() => client.terminals.list())
    setTerminals(found ?? [])
  }
  useEffect(() => {
    void load()
    return listen((events) => {
      if (events.some((event) => event.type.startsWith("pty."))) void load()
    })
  }, [])
  const create = async (): Promise<void> => {
    const made = await attempt(() => client.terminals.create())
    if (made === undefined) return
    await load()
    setChosen(made.id)
  }
  const current = terminals?.find((each) => each.id === chosen) ?? terminals?.[0]
  return (
    <div class="page terminals">
      <header class="page-head">
        <h1>Terminals</h1>
        <button class="small" onClick={() => void create()}><Icon name="plus" size={14} /> New terminal</button>
      </header>
      {terminals === undefined && <Spinner />}
      {terminals?.length === 0 && <p class="quiet">No terminal is open. Programs in a terminal go on when this page is closed.</p>}
      {terminals !== undefined && terminals.length > 0 && (
        <div class="terminal-tabs" role="group" aria-label="Terminals">
          {terminals.map((each) => (
            <span class="terminal-tab" key={each.id} data-current={each.id === current?.id}>
              <button aria-pressed={each.id === current?.id} onClick={() => setChosen(each.id)}>
                {visible(each.title)} <span class="quiet">{each.status === "exited" ? "ended" : shortPath(each.cwd)}</span>
              </button>
              <button class="icon-button tiny" aria-label={`End ${each.title}`} title="End it" onClick={() => void attempt(() => client.terminals.remove({ ptyID: each.id })).then(load)}>
                <Icon name="cross" size={12} />
              </button>
            </span>
          ))}
        </div>
      )}
      {current !== undefined && <Emulator key={current.id} terminal={current} />}
    </div>
  )
}

function Emulator(props: { terminal: PtyInfo }): JSX.Element {
  const into = useRef<HTMLDivElement>(null)
  const [problem, setProblem] = useState("")
  const { id } = props.terminal
  useEffect(() => {
    let end: (() => void) | undefined
    let isEnded = false
    import("../lib/emulator").then(
      async ({ attach }) => {
        if (isEnded) return
        end = await attach(into.current!, id, setProblem)
        if (isEnded) end()
      },
      () => setProblem("The terminal could not be loaded. Load the page again."),
    )
    return () => {
      isEnded = true
      end?.()
    }
  }, [id])
  return (
    <>
      {problem !== "" && <p class="quiet" role="status">{problem}</p>}
      <div class="emulator" ref={into} />
    </>
  )
}
