// A login to a provider: by a key, or in a browser tab of its own.

import type { Attempt, IntegrationInfo, OAuthMethod } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { client, messageOf } from "../lib/api"
import { visible } from "../lib/format"
import { Dialog } from "./dialog"
import { Spinner } from "./icons"

const LOOK_MILLIS = 1_500

export function Login(props: {
  integration: IntegrationInfo
  directory: string
  onClose: () => void
}): JSX.Element {
  const { integration, directory, onClose } = props
  const [key, setKey] = useState("")
  const [problem, setProblem] = useState("")
  const [begun, setBegun] = useState<Attempt | undefined>(undefined)
  const [code, setCode] = useState("")
  const [inputs, setInputs] = useState<Readonly<Record<string, string>>>({})
  const integrationID = integration.id
  const work = async (todo: () => Promise<void>): Promise<void> => {
    setProblem("")
    try {
      await todo()
    } catch (error) {
      setProblem(messageOf(error))
    }
  }
  useEffect(() => {
    if (begun === undefined) return
    const look = async (): Promise<void> => {
      const status = await client.integrations.attempt({ attemptID: begun.attemptID, directory })
      if (status.status === "complete") onClose()
      else if (status.status === "failed") setProblem(status.message)
      else if (status.status === "expired") setProblem("The login took too long. Begin again.")
    }
    const timer = setInterval(() => void work(look), LOOK_MILLIS)
    return () => clearInterval(timer)
  }, [begun])
  const begin = (method: OAuthMethod): Promise<void> =>
    work(async () => {
      const given = Object.fromEntries((method.prompts ?? []).map((prompt) => [prompt.key, inputs[prompt.key] ?? ("options" in prompt ? (prompt.options[0]?.value ?? "") : "")]))
      setBegun(await client.integrations.connectOauth({ integrationID, methodID: method.id, inputs: given, directory }))
    })
  const takesKey = integration.methods.some((method) => method.type === "key")
  const logins = integration.methods.filter((method) => method.type === "oauth")
  return (
    <Dialog title={`Connect ${integration.name}`} onClose={onClose}>
      {begun === undefined ? (
        <>
          {takesKey && (
            <form class="form" onSubmit={(event) => {
              event.preventDefault()
              void work(async () => {
                await client.integrations.connectKey({ integrationID, key: key.trim(), directory })
                onClose()
              })
            }}>
              <label>Key <input type="password" autocomplete="off" required value={key} onInput={(event) => setKey(event.currentTarget.value)} /></label>
              <button class="primary">Save the key</button>
            </form>
          )}
          {logins.map((method) => (
            <form class="form" key={method.id} onSubmit={(event) => { event.preventDefault(); void begin(method) }}>
              {(method.prompts ?? []).map((prompt) => (
                <label key={prompt.key}>
                  {visible(prompt.message)}
                  {prompt.type === "select" ? (
                    <select onChange={(event) => setInputs({ ...inputs, [prompt.key]: event.currentTarget.value })}>
                      {prompt.options.map((option) => <option key={option.value} value={option.value}>{option.label}</option>)}
                    </select>
                  ) : (
                    <input placeholder={prompt.placeholder} onInput={(event) => setInputs({ ...inputs, [prompt.key]: event.currentTarget.value })} />
                  )}
                </label>
              ))}
              <button>{visible(method.label)}</button>
            </form>
          ))}
          {!takesKey && logins.length === 0 && <p class="quiet">This provider takes its key from an environment variable of the server.</p>}
        </>
      ) : (
        <div class="form">
          <p>{visible(begun.instructions)}</p>
          <p><a href={/^https?:/.test(begun.url) ? begun.url : undefined} target="_blank" rel="noreferrer noopener">{begun.url}</a></p>
          {begun.mode === "code" ? (
            <form class="form" onSubmit={(event) => {
              event.preventDefault()
              void work(async () => {
                await client.integrations.completeAttempt({ attemptID: begun.attemptID, code: code.trim(), directory })
                onClose()
              })
            }}>
              <label>Code <input required value={code} onInput={(event) => setCode(event.currentTarget.value)} /></label>
              <button class="primary">Finish</button>
            </form>
          ) : (
            <p class="quiet"><Spinner /> This closes when the login is complete.</p>
          )}
        </div>
      )}
      {problem !== "" && <p class="failure" role="alert">{visible(problem)}</p>}
    </Dialog>
  )
}
