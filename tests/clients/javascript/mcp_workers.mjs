// Drives `perdure mcp-server` with the published SDK: starts a worker, waits for it, reads it once.
import { createRequire } from "node:module"

const [folder, command] = process.argv.slice(2)
const require = createRequire(`${folder}/package.json`)
const { Client } = await import(require.resolve("@modelcontextprotocol/sdk/client/index.js"))
const { StdioClientTransport } = await import(require.resolve("@modelcontextprotocol/sdk/client/stdio.js"))
const { ElicitRequestSchema } = await import(require.resolve("@modelcontextprotocol/sdk/types.js"))
const ok = (...words) => console.log("ok", ...words)

const client = new Client({ name: "test", version: "1" }, { capabilities: { elicitation: {} } })
client.setRequestHandler(ElicitRequestSchema, async ({ params }) => {
  ok("asked", Object.keys(params.requestedSchema.properties).join())
  return { action: "accept", content: { reply: "once" } }
})
await client.connect(new StdioClientTransport({ command, args: ["mcp-server"], env: process.env }))
ok("tools", (await client.listTools()).tools.map((tool) => tool.name).join())
const call = async (name, given, options) =>
  (await client.callTool({ name, arguments: given }, undefined, options)).structuredContent
const { session } = await call("session_start", { prompt: "write it", key: "one" })
const done = await call("session_wait", { session, seconds: 20 })
ok("result", done.state, done.result, done.delivered)
ok("again", (await call("session_result", { session })).delivered)
await client.close()
process.exit(0)
