// Generates and streams text through the AI SDK with its provider for OpenCode servers.
// Usage: node ai_sdk.mjs FOLDER ADDRESS. Prints a line per step.
import { createRequire } from "node:module"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const [folder, baseUrl] = process.argv.slice(2)
const require = createRequire(join(folder, "package.json"))
const load = (name) => import(pathToFileURL(require.resolve(name)).href)
const { createOpencode } = await load("ai-sdk-provider-opencode-sdk")
const { generateText, streamText } = await load("ai")

const opencode = createOpencode({ baseUrl, autoStartServer: false })
const model = opencode("fake/other-model")
const whole = await generateText({ model, prompt: "hello" })
console.log("ok generated", whole.text)
console.log("ok usage", whole.usage.inputTokens, whole.usage.outputTokens)
const pieces = []
const streamed = streamText({ model, prompt: "again" })
for await (const piece of streamed.textStream) pieces.push(piece)
console.log("ok streamed", pieces.join(""))
console.log("ok finished", await streamed.finishReason)
await opencode.dispose?.()
process.exit(0)
