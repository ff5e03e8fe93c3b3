// The files that a Session changed, in all or in one turn; a staged revert with its conflicts.

import type { FileDiff } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { attempt, client, messageOf } from "../../lib/api"
import { plural, visible } from "../../lib/format"
import type { ShownSession } from "../../lib/session"
import { FileDiffView } from "../../parts/diff"
import { Icon, Spinner } from "../../parts/icons"

export function ChangesPanel(props: { session: ShownSession }): JSX.Element {
  const { session } = props
  const view = session.view!
  const { revert } = view.info
  const [from, setFrom] = useState("")
  const [found, setFound] = useState<readonly FileDiff[] | string | undefined>(undefined)
  const steps = [...view.messages].filter((message) => message.type === "assistant" && (message.snapshot?.files?.length ?? 0) > 0)
  const last = steps.at(-1)?.id
  useEffect(() => {
    let isWanted = true
    const range = from === "" ? {} : { first: from, last: from }
    client.sessions.diff({ sessionID: session.id, ...range }).then(
      (files) => isWanted && setFound(files),
      (error) => isWanted && setFound(messageOf(error)),
    )
    return () => {
      isWanted = false
    }
  }, [session.id, from, last, revert])
  if (revert !== undefined) {
    return (
      <div class="panel-body">
        <p>These files are back as they were. <strong>Make it final</strong> to go on from there, or restore all.</p>
        {(revert.conflicts ?? []).length > 0 && (
          <section class="block">
            <h3 class="warn-text"><Icon name="warn" size={14} /> Left alone</h3>
            <ul class="conflicts">
              {revert.conflicts!.map((conflict) => (
                <li key={conflict.path}><code>{visible(conflict.path)}</code> <span class="quiet">{visible(conflict.reason)}</span></li>
              ))}
            </ul>
          </section>
        )}
        {(revert.files ?? []).map((file) => <FileDiffView key={file.path} change={file} />)}
        <div class="actions">
          <button class="primary" onClick={() => void attempt(() => client.sessions.revert.commit({ sessionID: session.id }))}>Make it final</button>
          <button onClick={() => void attempt(() => client.sessions.revert.clear({ sessionID: session.id }))}>Restore all</button>
        </div>
      </div>
    )
  }
  return (
    <div class="panel-body">
      <label class="inline">
        Changes of{" "}
        <select value={from} onChange={(event) => setFrom(event.currentTarget.value)}>
          <option value="">the whole Session</option>
          {steps.map((message, at) => (
            <option key={message.id} value={message.id}>
              turn {at + 1}: {message.type === "assistant" ? plural(message.snapshot?.files?.length ?? 0, "file") : ""}
            </option>
          ))}
        </select>
      </label>
      {found === undefined && <p><Spinner /></p>}
      {typeof found === "string" && <p class="failure">{found}</p>}
      {Array.isArray(found) && found.length === 0 && <p class="quiet">No file was changed.</p>}
      {Array.isArray(found) && found.map((file: FileDiff) => <FileDiffView key={file.path} change={file} isOpen={found.length < 12} />)}
    </div>
  )
}
