// Compiled with the client, and never run: what its types let a program say, and what not.

import {
  ClientError,
  type DurableEvent,
  DeclaredError,
  isPtyNotFound,
  isSessionNotFound,
  type Page,
  PerdureClient,
  resumingEvents,
  type SessionMessage,
} from "../../../../clients/typescript/src/index.js"

const client = new PerdureClient({ baseUrl: "http://127.0.0.1:1", headers: { "x-a": "b" } })
// @ts-expect-error: a client needs an address
new PerdureClient({})

export async function calls(signal: AbortSignal): Promise<string> {
  const session = await client.sessions.create({ model: { providerID: "demo", id: "demo" } })
  await client.sessions.create()
  await client.sessions.prompt({ sessionID: session.id, text: "hello", delivery: "queue" })
  await client.sessions.prompt({ sessionID: session.id, prompt: { text: "hello" } }, { signal })
  // @ts-expect-error: a prompt has a text or is whole
  await client.sessions.prompt({ sessionID: session.id })
  // @ts-expect-error: not both
  await client.sessions.prompt({ sessionID: session.id, text: "a", prompt: { text: "b" } })
  // @ts-expect-error: a delivery is one of two words
  await client.sessions.prompt({ sessionID: session.id, text: "a", delivery: "later" })
  // @ts-expect-error: how a call is made is no part of what it asks
  await client.sessions.get({ sessionID: session.id, signal })
  // @ts-expect-error: values are not changed in place
  session.id = "ses_other"
  const page: Page<SessionMessage> = await client.sessions.messages({ sessionID: session.id })
  // @ts-expect-error: a list may be shorter than one thinks
  return page.items[0].id
}

export async function* told(sessionID: string): AsyncGenerator<string> {
  for await (const event of client.sessions.events({ sessionID, after: 0 })) {
    if (event.type === "session.next.text.ended") yield event.data.text
    // @ts-expect-error: there is no such event
    if (event.type === "session.next.nothing") yield ""
  }
  for await (const event of client.events.subscribe()) {
    if (event.type === "session.next.text.delta") yield event.data.delta
    if (event.type === "session.created") yield event.data.info.title
    else if ("durable" in event) yield String((event satisfies DurableEvent).durable.seq)
  }
  for await (const event of resumingEvents(client, { sessionID })) yield event.type
}

export function meaning(error: unknown): string {
  if (error instanceof DeclaredError) {
    const { value } = error
    if (isSessionNotFound(value)) return value.sessionID
    if (isPtyNotFound(value)) return value.ptyID
  }
  if (error instanceof ClientError && error.reason === "transport") return error.message
  return "unknown"
}
