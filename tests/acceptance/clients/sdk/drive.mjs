// Uses a running server through the published SDK, the way its own users would.
//
//   node drive.mjs <folder with node_modules> <server address> <project directory>
//
// One line for each expectation, "ok" or "not ok"; the exit code says whether all of them held.
// Nothing here knows how the server is made: only what the SDK promises to whoever calls it.
import assert from "node:assert/strict"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const [folder, baseUrl, directory] = process.argv.slice(2)
const entry = join(folder, "node_modules", "@opencode-ai", "sdk", "dist", "v2", "client.js")
const { createOpencodeClient } = await import(pathToFileURL(entry).href)
const { v2 } = createOpencodeClient({ baseUrl })
const here = createOpencodeClient({ baseUrl, directory }).v2
const patience = 15_000
let broken = 0

/** Run one expectation. A failure is told and counted, and the rest goes on. */
async function expect(words, check) {
  try {
    await check()
    console.log(`ok ${words}`)
  } catch (error) {
    broken += 1
    console.log(`not ok ${words}: ${String(error?.message ?? error).split("\n").join(" | ")}`)
  }
}

/** The value below the envelope of a call that has to succeed. */
async function value(call, status = 200) {
  const { data, error, response } = await call
  assert.equal(response.status, status, JSON.stringify(error))
  return data && typeof data === "object" && "data" in data ? data.data : data
}

/** The failure of a call that has to be refused. */
async function refusal(call, status, tag) {
  const { error, response } = await call
  assert.equal(response.status, status)
  assert.equal(error?._tag, tag)
  return error
}

/** Events of a stream, up to and with the first for which `last` holds. */
async function collect(open, last) {
  const abort = new AbortController()
  const timer = setTimeout(() => abort.abort(), patience)
  const events = []
  try {
    const { stream } = await open(abort.signal)
    for await (const event of stream) {
      events.push(event)
      if (last(event)) return events
    }
  } finally {
    clearTimeout(timer)
    abort.abort()
  }
  throw new Error(`ended after ${events.map((event) => event.type).join(" ")}`)
}

const isEnd = (event) => event.type === "session.next.step.ended" && event.data.finish === "stop"

// ---- the place --------------------------------------------------------------------------------

await expect("health is good", async () => {
  assert.equal((await value(v2.health.get())).healthy, true)
})
await expect("the location is the project", async () => {
  assert.equal((await value(here.location.get())).directory, directory)
})
await expect("agents are listed", async () => {
  const names = (await value(v2.agent.list())).map((agent) => agent.id)
  assert.ok(names.includes("build") && names.includes("plan"))
})
await expect("models and providers are listed without their secrets", async () => {
  const models = await value(v2.model.list())
  const providers = await value(v2.provider.list())
  assert.ok(models.some((model) => model.id === "fake-model" && model.providerID === "fake"))
  assert.ok(providers.some((provider) => provider.id === "fake"))
  assert.doesNotMatch(JSON.stringify([models, providers]), /sk-|apiKey|authorization/i)
})
await expect("one provider is found and another is not", async () => {
  assert.equal((await value(v2.provider.get({ providerID: "fake" }))).id, "fake")
  await refusal(v2.provider.get({ providerID: "nobody" }), 404, "ProviderNotFoundError")
})

// ---- sessions ---------------------------------------------------------------------------------

let sessionID
await expect("a session needs no arguments", async () => {
  assert.match((await value(v2.session.create())).id, /^ses_/)
})
await expect("a session is created, and created again is the same", async () => {
  const session = await value(here.session.create({ agent: "build" }))
  sessionID = session.id
  assert.equal(session.agent, "build")
  assert.deepEqual(await value(v2.session.create({ id: sessionID, agent: "plan" })), session)
})
await expect("a session is found, listed and idle", async () => {
  assert.equal((await value(v2.session.get({ sessionID }))).id, sessionID)
  const listed = (await value(here.session.list({ limit: 50 }))).map((session) => session.id)
  assert.ok(listed.includes(sessionID))
  assert.deepEqual(await value(v2.session.active()), {})
})
await expect("sessions that are not there are refused", async () => {
  await refusal(v2.session.get({ sessionID: "ses_nobody" }), 404, "SessionNotFoundError")
  await refusal(v2.session.get({ sessionID: "nobody" }), 400, "InvalidRequestError")
})
await expect("switches are accepted", async () => {
  await value(v2.session.switchAgent({ sessionID, agent: "plan" }), 204)
  const model = { providerID: "fake", id: "fake-model" }
  await value(v2.session.switchModel({ sessionID, model }), 204)
})

// ---- permissions ------------------------------------------------------------------------------

const outside = { action: "external_directory", resources: ["/etc/*"], save: ["/etc/*"] }
await expect("a permission is asked for, listed and found", async () => {
  const asked = { sessionID, id: "per_from_the_sdk", ...outside }
  const made = await value(v2.session.permission.create(asked))
  assert.deepEqual(made, { id: "per_from_the_sdk", effect: "ask" })
  await refusal(v2.session.permission.create(asked), 409, "ConflictError")
  assert.deepEqual(await value(v2.session.permission.list({ sessionID })), [asked])
  assert.deepEqual(await value(here.permission.request.list()), [asked])
  const requestID = asked.id
  assert.deepEqual(await value(v2.session.permission.get({ sessionID, requestID })), asked)
})
await expect("a permission is given for good, and taken back", async () => {
  const word = { sessionID, requestID: "per_from_the_sdk", reply: "always" }
  await value(v2.session.permission.reply(word), 204)
  await refusal(v2.session.permission.reply(word), 404, "PermissionNotFoundError")
  const [rule] = await value(v2.permission.saved.list())
  assert.equal(rule.resource, "/etc/*")
  await value(v2.permission.saved.remove({ id: rule.id }), 204)
  assert.deepEqual(await value(v2.permission.saved.list()), [])
})

// ---- a turn, watched on both streams ----------------------------------------------------------

const messageID = "msg_from_the_sdk"
const prompt = { text: "Say something." }
let told = []
await expect("a prompt is answered, and both streams tell of it", async () => {
  let greeted
  const connected = new Promise((resolve) => (greeted = resolve))
  const live = collect(
    (signal) => v2.event.subscribe({}, { signal }),
    (event) => (event.type === "server.connected" && greeted(), isEnd(event)),
  )
  const durable = collect((signal) => v2.session.events({ sessionID, after: "0" }, { signal }), isEnd)
  await connected
  const receipt = await value(v2.session.prompt({ sessionID, id: messageID, prompt }))
  assert.equal(receipt.id, messageID)
  const [fragments, facts] = await Promise.all([live, durable])
  told = facts
  assert.equal(fragments[0].type, "server.connected")
  assert.ok(fragments.some((event) => event.type === "session.next.text.delta"))
  assert.ok(!facts.some((event) => event.type.endsWith(".delta")))
})
await expect("the sequence has no gap", async () => {
  const seqs = told.map((event) => event.durable.seq)
  assert.deepEqual(seqs, seqs.map((_, index) => seqs[0] + index))
})
await expect("a retry is the same prompt, and anything else conflicts", async () => {
  const again = await value(v2.session.prompt({ sessionID, id: messageID, prompt }))
  assert.ok(again.promotedSeq > again.admittedSeq)
  const other = v2.session.prompt({ sessionID, id: messageID, prompt: { text: "Other." } })
  await refusal(other, 409, "ConflictError")
})
await expect("a delivery that does not exist is refused", async () => {
  const call = v2.session.prompt({ sessionID, prompt, delivery: "later" })
  assert.match((await refusal(call, 400, "InvalidRequestError")).message, /steer/)
})
await expect("waiting and interrupting an idle session return", async () => {
  await value(v2.session.wait({ sessionID }), 204)
  await value(v2.session.interrupt({ sessionID }), 204)
})

// ---- reading it back --------------------------------------------------------------------------

await expect("messages are paged with the cursors of the pages before", async () => {
  const seen = []
  let page = (await v2.session.messages({ sessionID, limit: 1, order: "asc" })).data
  seen.push(...page.data)
  while (page.cursor.next) {
    page = (await v2.session.messages({ sessionID, cursor: page.cursor.next })).data
    seen.push(...page.data)
  }
  const kinds = seen.map((message) => message.type)
  assert.deepEqual(kinds, ["agent-switched", "model-switched", "user", "assistant", "assistant"])
})
await expect("one message is found and another is not", async () => {
  assert.equal((await value(v2.session.message({ sessionID, messageID }))).text, prompt.text)
  const missing = v2.session.message({ sessionID, messageID: "msg_nobody" })
  await refusal(missing, 404, "MessageNotFoundError")
})
await expect("the context holds the conversation", async () => {
  const kinds = (await value(v2.session.context({ sessionID }))).map((message) => message.type)
  assert.deepEqual(kinds.slice(-3), ["user", "assistant", "assistant"])
})
await expect("history is what the stream told", async () => {
  assert.deepEqual(await value(v2.session.history({ sessionID, limit: "100" })), told)
  await refusal(v2.session.history({ sessionID, limit: "101" }), 400, "InvalidRequestError")
})

// ---- credentials ------------------------------------------------------------------------------

await expect("a key is stored, renamed and forgotten, and never told", async () => {
  const integrationID = "openai"
  assert.ok((await value(v2.integration.list())).some((each) => each.id === integrationID))
  await value(v2.integration.connect.key({ integrationID, key: "sk-of-the-driver", label: "mine" }), 204)
  const [connection] = (await value(v2.integration.get({ integrationID }))).connections
  assert.equal(connection.label, "mine")
  await value(v2.credential.update({ credentialID: connection.id, label: "work" }), 204)
  const found = await value(v2.integration.get({ integrationID }))
  assert.equal(found.connections[0].label, "work")
  assert.ok(!JSON.stringify(found).includes("sk-of-the-driver"))
  await value(v2.credential.remove({ credentialID: connection.id }), 204)
  assert.deepEqual((await value(v2.integration.get({ integrationID }))).connections, [])
})
await expect("integrations, logins and attempts that do not exist are refused", async () => {
  const unknown = v2.integration.connect.key({ integrationID: "nobody", key: "k" })
  await refusal(unknown, 404, "IntegrationNotFoundError")
  const login = v2.integration.connect.oauth({ integrationID: "openai", methodID: "nope", inputs: {} })
  await refusal(login, 400, "InvalidRequestError")
  const attemptID = "nope"
  await refusal(v2.integration.attempt.status({ attemptID }), 404, "AttemptNotFoundError")
  await refusal(v2.integration.attempt.complete({ attemptID, code: "c" }), 404, "AttemptNotFoundError")
  await value(v2.integration.attempt.cancel({ attemptID }), 204)
})

// ---- files, commands and terminals ------------------------------------------------------------

await expect("files are listed and found, and commands are offered", async () => {
  const entries = await value(here.fs.list())
  assert.ok(entries.some((each) => each.path === "opencode.json" && each.type === "file"))
  const found = await value(here.fs.find({ query: "opncode", type: "file", limit: "5" }))
  assert.deepEqual(found, [{ path: "opencode.json", type: "file" }])
  const names = (await value(here.command.list())).map((each) => each.name)
  assert.ok(names.includes("init") && names.includes("review"))
})
await expect("a terminal is started, renamed, typed into with a ticket, and removed", async () => {
  const args = ["-c", "stty -echo; read -r line; echo \"<$line>\"; read -r line"]
  const { id: ptyID } = await value(here.pty.create({ command: "/bin/sh", args }))
  const size = { rows: 30, cols: 100 }
  assert.equal((await value(here.pty.update({ ptyID, title: "mine", size }))).title, "mine")
  assert.ok((await value(here.pty.list())).some((each) => each.id === ptyID))
  const { ticket } = await value(here.pty.connectToken({ ptyID }))
  const query = new URLSearchParams({ ticket, "location[directory]": directory })
  const address = `${baseUrl.replace("http", "ws")}/api/pty/${ptyID}/connect?${query}`
  assert.match(await typed(address, "hello\n", ">"), /<hello>/)
  await value(here.pty.remove({ ptyID }), 204)
  await refusal(here.pty.get({ ptyID }), 404, "PtyNotFoundError")
})

/** What a terminal prints after `text` was typed, up to `end`. */
function typed(address, text, end) {
  return new Promise((resolve, reject) => {
    const socket = new WebSocket(address)
    let printed = ""
    setTimeout(() => reject(new Error(`only ${printed}`)), patience).unref()
    socket.onerror = () => reject(new Error("the connection failed"))
    socket.onopen = () => socket.send(text)
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") printed += data
      if (!printed.includes(end)) return
      socket.onclose = () => resolve(printed)
      socket.close()
    }
  })
}

process.exit(broken === 0 ? 0 : 1)
