// How the client reads: streams cut anywhere, answers that make no sense, and what it sends.
//
//   node read.mjs <folder of the compiled client>
//
// One line for each expectation, "ok" or "not ok"; the exit code says whether all of them held.
import assert from "node:assert/strict"
import { createServer } from "node:http"
import { join } from "node:path"
import { pathToFileURL } from "node:url"

const load = (name) => import(pathToFileURL(join(process.argv[2], name)).href)
const { ClientError, DeclaredError, PerdureClient, isSessionNotFound } = await load("index.js")
const { EventReader } = await load("sse.js")
const { either, segment } = await load("wire.js")
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

const bytes = (text) => new TextEncoder().encode(text)
const read = (chunks, max = 1000) => {
  const reader = new EventReader(max)
  return chunks.flatMap((chunk) => [...reader.feed(chunk)].map(({ data }) => data))
}
const refused = async (promise, reason, status) => {
  const error = await promise.then(() => undefined, (error) => error)
  assert.ok(error instanceof ClientError, String(error))
  assert.deepEqual([error.reason, error.status], [reason, status])
  return error
}

// ---- event streams ----------------------------------------------------------------------------

const awkward =
  "\ufeff: hi\r\n\r\ndata: one\r\rid: 7\ndata:two ü€😀\ndata:  three\n: no\nevent: x\n\n" +
  "data\n\ndata: \n\nretry: 1\n\ndatum: no\n\ndata: \ufeff four\r\n\r\ndata: cut off\n"
const meant = ["one", "two ü€😀\n three", "", "", "\ufeff four"]
await expect("a stream means the same wherever it is cut in two", () => {
  const whole = bytes(awkward)
  for (let at = 0; at <= whole.length; at += 1) {
    assert.deepEqual(read([whole.slice(0, at), whole.slice(at)]), meant, `cut at ${at}`)
  }
})
await expect("an event has the name that the server gave it, and the next one has none", () => {
  const events = [...new EventReader(1000).feed(bytes("event: a\ndata: 1\n\ndata: 2\n\nevent: b\n\ndata: 3\n\n"))]
  assert.deepEqual(events.map(({ name }) => name), ["a", "", ""])
})
await expect("a stream means the same byte by byte, with empty chunks between", () => {
  const chunks = [...bytes(awkward)].flatMap((byte) => [new Uint8Array(), Uint8Array.of(byte)])
  assert.deepEqual(read(chunks), meant)
})
await expect("an event that is too long is refused, in one line or in many", () => {
  for (const text of [`data: ${"x".repeat(2000)}`, "data: xxxxxxxxx\n".repeat(200)]) {
    assert.throws(() => read([bytes(text)]), (error) => error.reason === "malformed-response")
  }
  assert.equal(read([bytes("data: xxxxxxxxx\n\n".repeat(200))]).length, 200)
  const largest = bytes(`data: ${"x".repeat(900)}\n\n`)
  assert.equal(read([largest.slice(0, 800), largest.slice(800)])[0].length, 900)
})
await expect("a line of megabytes in small pieces costs no more than its length", () => {
  const piece = bytes("x".repeat(64))
  const reader = new EventReader(1e8)
  const began = performance.now()
  for (let count = 0; count < 200_000; count += 1) assert.deepEqual([...reader.feed(piece)], [])
  assert.ok(performance.now() - began < 10_000)
})
await expect("bytes that are no UTF-8 are refused", () => {
  assert.throws(() => read([Uint8Array.from([0x64, 0xff])]), (error) => error.reason === "malformed-response")
})

// ---- spelling ---------------------------------------------------------------------------------

await expect("an id is one segment, whatever it holds", () => {
  assert.equal(segment("a/b ?#%.ü!'()*~"), "a%2Fb%20%3F%23%25%2E%C3%BC%21%27%28%29%2A~")
  assert.throws(() => segment(".."), TypeError)
  assert.throws(() => segment("."), TypeError)
})
await expect("a part and its whole exclude each other", () => {
  assert.deepEqual(either(undefined, "text", "a"), { text: "a" })
  assert.deepEqual(either({ text: "b" }, "text", undefined), { text: "b" })
  assert.throws(() => either({}, "text", "a"), TypeError)
  assert.throws(() => either(undefined, "text", undefined), TypeError)
})

// ---- answers ----------------------------------------------------------------------------------

const seen = []
let answer
const server = createServer((request, response) => {
  seen.push(request)
  answer(response, request)
})
await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
const baseUrl = `http://127.0.0.1:${server.address().port}/`
const client = new PerdureClient({ baseUrl, headers: { "x-mine": "client", authorization: "Bearer a" } })
const says = (status, type, body) => {
  answer = (response) => response.writeHead(status, { "content-type": type }).end(body)
}
const get = (options) => client.sessions.get({ sessionID: "ses_1" }, options)

await expect("headers of a call come on top of the client's", async () => {
  says(200, "application/json; charset=utf-8", '{"data":{"id":"ses_1"}}')
  assert.deepEqual(await get({ headers: { "X-Mine": "call" } }), { id: "ses_1" })
  const { headers, url } = seen.at(-1)
  assert.deepEqual([headers["x-mine"], headers.authorization, url], ["call", "Bearer a", "/api/session/ses_1"])
})
await expect("a query is spelled as by the other clients", async () => {
  says(200, "application/json", '{"data":[],"location":{}}')
  await client.files.find({ query: "a b/ü~*'()!&=+", limit: 5, directory: "/x y" })
  assert.equal(
    seen.at(-1).url,
    "/api/fs/find?query=a+b%2F%C3%BC~%2A%27%28%29%21%26%3D%2B&limit=5&location%5Bdirectory%5D=%2Fx+y",
  )
})
await expect("a declared failure keeps its tagged value", async () => {
  says(404, "application/json", '{"_tag":"SessionNotFoundError","message":"m","sessionID":"ses_1"}')
  const error = await get().catch((error) => error)
  assert.ok(error instanceof DeclaredError && isSessionNotFound(error.value))
  assert.deepEqual([error.tag, error.status, error.value.sessionID], ["SessionNotFoundError", 404, "ses_1"])
})
await expect("answers that make no sense are told apart", async () => {
  says(502, "text/html", "<html>")
  await refused(get(), "unexpected-status", 502)
  says(404, "application/json", '{"message":"no tag"}')
  await refused(get(), "unexpected-status", 404)
  says(201, "application/json", '{"data":{}}')
  await refused(get(), "unexpected-status", 201)
  says(200, "text/html", "<html>")
  await refused(get(), "unsupported-content-type", 200)
  for (const body of ["{", "[]", "null", "\xff"]) {
    says(200, "application/json", Buffer.from(body, "latin1"))
    assert.equal((await get().catch((error) => error)).reason, "malformed-response", body)
  }
  says(200, "application/json", "{}")
  await refused(get(), "malformed-response", undefined)
  await refused(client.sessions.list(), "malformed-response", undefined)
  says(200, "application/json", '{"data":{}}')
  await refused(client.agents.list(), "malformed-response", undefined)
  await refused(client.sessions.interrupt({ sessionID: "ses_1" }), "unexpected-status", 200)
})
await expect("an answer that breaks off is a failure of the transport", async () => {
  answer = (response) => {
    response.writeHead(200, { "content-type": "application/json", "content-length": "100" })
    response.write('{"data":', () => response.destroy())
  }
  await refused(get(), "transport", undefined)
})
await expect("silence has an end, and is told as such", async () => {
  answer = () => undefined
  assert.match((await refused(get({ timeout: 20 }), "transport", undefined)).message, /silent for 20 ms/)
  answer = (response) => response.writeHead(200, { "content-type": "text/event-stream" }).flushHeaders()
  const step = client.events.subscribe({}, { timeout: 20 }).next()
  assert.match((await refused(step, "transport", undefined)).message, /silent for 20 ms/)
})
await expect("a caller that gives up gets its own reason back", async () => {
  const abort = new AbortController()
  answer = () => abort.abort("enough")
  assert.equal(await get({ signal: abort.signal }).catch((error) => error), "enough")
  assert.equal(await get({ signal: abort.signal }).catch((error) => error), "enough")
})

// ---- streams ----------------------------------------------------------------------------------

const streams = (text) => {
  answer = (response, request) => {
    response.writeHead(200, { "content-type": "text/event-stream" })
    response.write(text)
    closed = new Promise((resolve) => request.socket.once("close", resolve))
  }
}
let closed
await expect("a stream is opened by its first step and closed with its last", async () => {
  streams('data: {"type":"a"}\n\ndata: {"type":"b"}\n\n')
  const before = seen.length
  const events = client.events.subscribe()
  assert.equal(seen.length, before)
  for await (const event of events) {
    assert.equal(event.type, "a")
    break
  }
  await closed
})
await expect("the end of a replay is told to the caller who asks, and is no event of the log", async () => {
  streams(
    'id: 1\ndata: {"type":"a","durable":{"seq":1}}\n\n' +
      'event: session.replayed\ndata: {"type":"session.replayed","data":{"sessionID":"ses_1","seq":1}}\n\n' +
      'id: 2\ndata: {"type":"b","durable":{"seq":2}}\n\n',
  )
  const told = []
  const events = client.sessions.events({ sessionID: "ses_1" }, { replayed: (mark) => told.push(mark) })
  const types = [(await events.next()).value.type, (await events.next()).value.type]
  await events.return()
  assert.deepEqual([types, told], [["a", "b"], [{ sessionID: "ses_1", seq: 1 }]])
  assert.match(seen.at(-1).url, /[?&]replayed=true$/)
})
await expect("an aborted stream ends with the reason, also between events it has", async () => {
  streams('data: {"type":"a"}\n\ndata: {"type":"b"}\n\n')
  const abort = new AbortController()
  const events = client.events.subscribe({}, { signal: abort.signal })
  await events.next()
  abort.abort("enough")
  assert.equal(await events.next().catch((error) => error), "enough")
  await closed
})
await expect("failures of a stream come with its first step", async () => {
  says(404, "application/json", '{"_tag":"SessionNotFoundError","message":"m","sessionID":"s"}')
  const events = client.sessions.events({ sessionID: "ses_1" })
  assert.equal((await events.next().catch((error) => error)).tag, "SessionNotFoundError")
  says(200, "application/json", "{}")
  await refused(client.events.subscribe().next(), "unsupported-content-type", 200)
  streams("data: nonsense\n\n")
  await refused(client.events.subscribe().next(), "malformed-response", 200)
})

server.closeAllConnections()
server.close()
await expect("nobody there is a failure of the first call, not of the client", async () => {
  await refused(new PerdureClient({ baseUrl }).health.get(), "transport", undefined)
  await refused(new PerdureClient({ baseUrl: "no address" }).health.get(), "transport", undefined)
})
process.exit(broken === 0 ? 0 : 1)
