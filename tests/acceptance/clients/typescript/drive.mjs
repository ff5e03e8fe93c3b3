// Uses a running server through the TypeScript client, as a program of its users would.
//
//   node drive.mjs <folder of the compiled client> <server address> <project directory>
//
// One line for each expectation, "ok" or "not ok"; the exit code says whether all of them held.
// "restart" on a line of its own asks whoever runs this to kill the server and to start it again.
import assert from "node:assert/strict"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const [folder, baseUrl, directory] = process.argv.slice(2)
const library = await import(pathToFileURL(join(folder, "index.js")).href)
const { DeclaredError, isConflict, isMessageNotFound, isSessionNotFound } = library
const { PerdureClient, resumingEvents } = library
const client = new PerdureClient({ baseUrl })
const { sessions } = client
const patience = AbortSignal.timeout(25_000)
let broken = 0

async function expect(words, check) {
  try {
    await check()
    console.log(`ok ${words}`)
  } catch (error) {
    broken += 1
    console.log(`not ok ${words}: ${String(error?.stack ?? error).split("\n").join(" | ")}`)
  }
}

/** The tagged value of a call that has to be refused. */
async function refusal(call) {
  const error = await call.then(() => undefined, (error) => error)
  assert.ok(error instanceof DeclaredError, String(error))
  return error.value
}

/** Events of a stream, up to and with the first for which `last` holds. */
async function collect(events, last) {
  const found = []
  for await (const event of events) {
    found.push(event)
    if (last(event)) return found
  }
  throw new Error(`ended after ${found.map((event) => event.type).join(" ")}`)
}

const isEnd = (event) => event.type === "session.next.step.ended" && event.data.finish === "stop"
const sessionID = "ses_from_typescript"
const messageID = "msg_from_typescript"

await expect("health is good, and a location is found", async () => {
  assert.equal((await client.health.get()).healthy, true)
  assert.equal((await client.locations.get({ directory })).directory, directory)
})
await expect("a session is created, and created again is the same", async () => {
  const session = await sessions.create({ id: sessionID, location: { directory } })
  assert.deepEqual(await sessions.create({ id: sessionID }), session)
  assert.deepEqual(await sessions.get({ sessionID }), session)
})

let told
await expect("a prompt is answered, and both streams tell of it", async () => {
  const live = client.events.subscribe({}, { signal: patience })
  assert.equal((await live.next()).value.type, "server.connected")
  const receipt = await sessions.prompt({ sessionID, id: messageID, text: "Say something." })
  assert.equal(receipt.id, messageID)
  const events = sessions.events({ sessionID, after: 0 }, { signal: patience })
  const [fragments, facts] = await Promise.all([collect(live, isEnd), collect(events, isEnd)])
  told = facts
  assert.ok(fragments.some((event) => event.type === "session.next.text.delta"))
  const seqs = facts.map((event) => event.durable.seq)
  assert.deepEqual(seqs, seqs.map((_, index) => index + 1))
  await sessions.wait({ sessionID })
})
await expect("declared failures are told apart by their guards", async () => {
  const nobody = await refusal(sessions.get({ sessionID: "ses_nobody" }))
  assert.ok(isSessionNotFound(nobody) && nobody.sessionID === "ses_nobody")
  assert.ok(isMessageNotFound(await refusal(sessions.message({ sessionID, messageID: "msg_x" }))))
  const other = sessions.prompt({ sessionID, id: messageID, text: "Something else." })
  assert.ok(isConflict(await refusal(other)))
  const events = sessions.events({ sessionID: "ses_nobody" })
  assert.ok(isSessionNotFound(await refusal(events.next())))
})
await expect("messages are paged with the cursors of the pages before", async () => {
  const kinds = []
  let page = await sessions.messages({ sessionID, limit: 1, order: "asc" })
  assert.equal(page.items.length, 1)
  for (;;) {
    kinds.push(...page.items.map((message) => message.type))
    if (page.next === undefined) break
    page = await sessions.messages({ sessionID, cursor: page.next })
  }
  assert.deepEqual(kinds, ["user", "assistant"])
  const history = await sessions.history({ sessionID, limit: 3 })
  assert.deepEqual([history.items, history.hasMore], [told.slice(0, 3), true])
})
await expect("a stream that is given up leaves the session as it is", async () => {
  const abort = new AbortController()
  const events = sessions.events({ sessionID, after: told.length }, { signal: abort.signal })
  const next = events.next().catch((error) => error)
  abort.abort("enough")
  assert.equal(await next, "enough")
  assert.equal((await sessions.get({ sessionID })).id, sessionID)
})
await expect("a file is read byte by byte", async () => {
  const bytes = await client.files.read({ path: "opencode.json", directory })
  assert.ok(bytes instanceof Uint8Array && JSON.parse(new TextDecoder().decode(bytes)))
})
await expect("a terminal is typed into over a socket", async () => {
  const args = ["-c", 'stty -echo; read -r line; echo "<$line>"; read -r line']
  const { id: ptyID } = await client.terminals.create({ command: "/bin/sh", args, directory })
  const { ticket } = await client.terminals.connectToken({ ptyID, directory })
  const socket = client.terminals.connect({ ptyID, ticket, directory })
  let printed = ""
  await new Promise((resolve, reject) => {
    patience.addEventListener("abort", () => reject(new Error(`only ${printed}`)))
    socket.onerror = () => reject(new Error("the connection failed"))
    socket.onopen = () => socket.send("hello\n")
    socket.onmessage = ({ data }) => {
      if (typeof data === "string") printed += data
      if (printed.includes("<hello>")) resolve()
    }
  })
  socket.close()
  await client.terminals.remove({ ptyID, directory })
})

await expect("events go on without a gap when the server is killed and started again", async () => {
  const lost = []
  const reconnected = (one) => lost.push(one)
  const events = resumingEvents(client, { sessionID, reconnected }, { signal: patience })
  const before = told.length
  const seqs = []
  for await (const { durable } of events) {
    seqs.push(durable.seq)
    if (durable.seq === before) console.log("restart")
    // Sent by whoever restarted the server.
    if (durable.seq === before + 2) break
  }
  assert.deepEqual(seqs, Array.from({ length: before + 2 }, (_, index) => index + 1))
  assert.equal(lost.length, 1)
  assert.equal(lost[0].after, before)
  assert.equal(lost[0].cause?.reason, "transport")
})
process.exit(broken === 0 ? 0 : 1)
