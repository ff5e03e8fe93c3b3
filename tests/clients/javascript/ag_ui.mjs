// Drives POST /ag-ui with the published client: a turn with a permission, read again, resumed again.
import { createRequire } from "node:module"

const [folder, url, password] = process.argv.slice(2)
const { HttpAgent } = await import(createRequire(`${folder}/package.json`).resolve("@ag-ui/client"))
const headers = password ? { authorization: `Basic ${btoa(`opencode:${password}`)}` } : {}
const ok = (...words) => console.log("ok", ...words)

function agent(messages) {
  return new HttpAgent({ url: `${url}/ag-ui`, threadId: "thread 1", headers, initialMessages: messages })
}
async function run(of, parameters) {
  const seen = []
  await of.runAgent(parameters, { onEvent: ({ event }) => void seen.push(event) })
  return seen
}
const kinds = (events) => [...new Set(events.map((event) => event.type))].join(" ")
const shown = (messages) =>
  messages.map((each) => `${each.role}=${(each.content ?? "") + (each.toolCalls ?? []).map((call) => call.function.name)}`)
    .join(" | ")

const user = { id: "u1", role: "user", content: "write it" }
const first = agent([user])
const begun = await run(first, { runId: "run 1" })
ok("first", kinds(begun))
const finished = begun.at(-1)
ok("outcome", finished.outcome.type, finished.outcome.interrupts.length, finished.outcome.interrupts[0].reason)
const interrupt = finished.outcome.interrupts[0]
ok("call", String(begun.some((event) => event.type === "TOOL_CALL_START" && event.toolCallId === interrupt.toolCallId)))
const resume = [{ interruptId: interrupt.id, status: "resolved", payload: { reply: "once" } }]
const resumed = await run(first, { runId: "run 2", resume })
ok("resumed", resumed.at(-1).type, resumed.at(-1).outcome.type)
ok("messages", shown(first.messages))

// A client that was cut off has nothing but its own message, or half an answer.
for (const [name, before] of [["lost", [user]], ["half", [user, ...first.messages.slice(1, 2)]], ["whole", first.messages]]) {
  const again = agent(structuredClone(before))
  const events = await run(again, { runId: "run 2", resume })
  ok(name, events.at(-1).type, String(shown(again.messages) === shown(first.messages)))
}
first.addMessage({ id: "u2", role: "user", content: "and now" })
await run(first, { runId: "run 3" })
ok("second turn", shown(first.messages.slice(-2)))
process.exit(0)
