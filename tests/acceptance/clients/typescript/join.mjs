// Joins an answer in the middle, and prints the parts as a person would see them at its end.
//
//   node join.mjs <folder of the compiled client> <address> <session>
//
// Prints "joined" once it shows what there is, and at the end one line of JSON.
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const [folder, baseUrl, sessionID] = process.argv.slice(2)
const { PerdureClient } = await import(pathToFileURL(join(folder, "index.js")).href)
const client = new PerdureClient({ baseUrl })
const events = client.events.subscribe()
await events.next()

const parts = new Map()
const { messages } = await client.sessions.snapshot({ sessionID })
for (const message of messages) {
  if (message.type !== "assistant") continue
  for (const part of message.content) {
    const text = part.type === "tool" ? part.state.input : part.text
    parts.set(`${message.id} ${part.type} ${part.id}`, { text, cursor: part.cursor })
  }
}
console.log("joined")

const keyOf = ({ assistantMessageID, textID, reasoningID, callID }) =>
  textID !== undefined
    ? `${assistantMessageID} text ${textID}`
    : reasoningID !== undefined
      ? `${assistantMessageID} reasoning ${reasoningID}`
      : `${assistantMessageID} tool ${callID}`
for await (const { type, data } of events) {
  if (data.sessionID !== sessionID) continue
  if (/\.(text|reasoning|tool\.input)\.started$/.test(type)) {
    if (!parts.has(keyOf(data))) parts.set(keyOf(data), { text: "", cursor: 0 })
  } else if (type.endsWith(".delta") && data.cursor > parts.get(keyOf(data)).cursor) {
    const part = parts.get(keyOf(data))
    if (data.cursor !== part.cursor + 1) throw new Error(`a gap before ${data.cursor}`)
    parts.set(keyOf(data), { text: part.text + data.delta, cursor: data.cursor })
  } else if (type.endsWith(".step.ended") && data.finish === "stop") {
    const shown = [...parts].map(([key, { text }]) => [key.slice(key.indexOf(" ") + 1), text])
    console.log(JSON.stringify(shown))
    process.exit(0)
  }
}
