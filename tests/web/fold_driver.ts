// Folds the logs that a test sends, one JSON line each, with the fold of the page, and answers each
// with a line: what is shown at the end, and whether each moment of the past is what was shown then.

import { createInterface } from "node:readline"
import { History } from "../../web/src/fold/history"
import { SessionView } from "../../web/src/fold/session"

for await (const line of createInterface({ input: process.stdin })) {
  const { snapshot, events } = JSON.parse(line)
  const view = new SessionView(snapshot)
  const history = new History(snapshot.session)
  const shown: [number, string, string][] = []
  for (const event of events) {
    view.apply(event)
    history.add(event)
    if (event.durable !== undefined) {
      shown.push([event.durable.seq, JSON.stringify([...view.messages]), JSON.stringify(view.inbox)])
    }
  }
  const wrong = shown.filter(([seq, messages, inbox]) => {
    const then = history.at(seq)
    const found = then.ids.map((id) => then.message(id))
    return JSON.stringify(found) !== messages || JSON.stringify(then.inbox) !== inbox
  })
  const { info, inbox, todos, notice, seq } = view
  console.log(JSON.stringify({
    messages: [...view.messages],
    info,
    inbox,
    todos,
    notice,
    seq,
    wrong: wrong.map(([at]) => at),
  }))
}
