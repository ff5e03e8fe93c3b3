// Starts a server with `createOpencode()` of the published SDK, and has one conversation with it.
// Usage: node create_opencode.mjs FOLDER PORT; `opencode` must be on PATH. Prints a line per step.
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const [folder, port] = process.argv.slice(2)
const sdk = join(folder, "node_modules", "@opencode-ai", "sdk", "dist", "index.js")
const { createOpencode } = await import(pathToFileURL(sdk).href)

const { client, server } = await createOpencode({
  port: Number(port),
  config: { logLevel: "WARN", model: "fake/other-model" },
})
console.log("ok started", server.url)
try {
  const config = (await client.config.get({ throwOnError: true })).data
  console.log("ok config", config.model)
  const events = await client.event.subscribe()
  const session = (await client.session.create({ body: { title: "Of the SDK" } })).data
  console.log("ok session", session.title)
  const asked = client.session.prompt({
    path: { id: session.id },
    body: { parts: [{ type: "text", text: "hello" }] },
  })
  let text = ""
  for await (const event of events.stream) {
    if (event.type === "message.part.delta") text += event.properties.delta
    if (event.type === "session.idle") break
  }
  console.log("ok streamed", text)
  const answer = (await asked).data
  console.log("ok answer", answer.parts.find((part) => part.type === "text").text)
} finally {
  server.close()
}
