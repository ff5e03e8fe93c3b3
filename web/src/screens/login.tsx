// The log-in: a form of the page, which password managers know how to fill.

import type { JSX } from "preact"
import { useState } from "preact/hooks"
import { access, checkAccess, logIn } from "../lib/api"
import { Mark } from "../parts/mark"

export function LogIn(): JSX.Element {
  const [isBusy, setBusy] = useState(false)
  if (access.value === "checking") return <div class="login" aria-busy="true" />
  const onSubmit = async (event: Event): Promise<void> => {
    event.preventDefault()
    const form = new FormData(event.target as HTMLFormElement)
    setBusy(true)
    await logIn(String(form.get("username")), String(form.get("password")))
    setBusy(false)
  }
  return (
    <div class="login">
      <main>
        <Mark size={44} />
        <h1>Perdure</h1>
        {access.value === "unreachable" ? (
          <>
            <p class="quiet">The server does not answer. Is <code>perdure serve</code> still running?</p>
            <button class="primary" onClick={() => void checkAccess()}>Try again</button>
          </>
        ) : (
          <form onSubmit={(event) => void onSubmit(event)}>
            <p class="quiet">
              The password is in the file <code>server-password</code> of the data directory, or in{" "}
              <code>OPENCODE_SERVER_PASSWORD</code>. <code>perdure web</code> logs in by itself.
            </p>
            <label>
              User
              <input name="username" autocomplete="username" value="opencode" required spellcheck={false} />
            </label>
            <label>
              Password
              <input name="password" type="password" autocomplete="current-password" required autoFocus />
            </label>
            {access.value === "refused" && <p class="error" role="alert">The server refused this user and password.</p>}
            <button class="primary" disabled={isBusy}>Log in</button>
          </form>
        )}
      </main>
    </div>
  )
}
