// The page: log-in, or the list of Sessions beside the screen that the address names.

import { render, type JSX } from "preact"
import { useEffect } from "preact/hooks"
import { access, checkAccess, dismiss, problems } from "./lib/api"
import { installKeys, isHelpOpen } from "./lib/keys"
import { route } from "./lib/route"
import { loadAttention, loadSessions, waitingCount, watchSessions } from "./lib/sessions"
import { connection, startStream } from "./lib/stream"
import { Icon } from "./parts/icons"
import { late } from "./parts/late"
import { Help } from "./screens/help"
import { LogIn } from "./screens/login"
import { NewSession } from "./screens/new"
import { SessionScreen } from "./screens/session"
import { Overview, Sidebar } from "./screens/sessions"

const HealthScreen = late(() => import("./screens/health").then((it) => it.HealthScreen))
const SettingsScreen = late(() => import("./screens/settings").then((it) => it.SettingsScreen))
const TerminalScreen = late(() => import("./screens/terminal").then((it) => it.TerminalScreen))

function Screen(): JSX.Element {
  const { screen, sessionID } = route.value
  switch (screen) {
    case "session":
      return <SessionScreen key={sessionID} id={sessionID!} />
    case "new":
      return <NewSession />
    case "terminal":
      return <TerminalScreen />
    case "health":
      return <HealthScreen />
    case "settings":
      return <SettingsScreen />
    default:
      return <Overview />
  }
}

function Frame(): JSX.Element {
  useEffect(() => {
    startStream()
    watchSessions()
    installKeys()
    void loadSessions()
    void loadAttention()
  }, [])
  const waiting = waitingCount.value
  useEffect(() => {
    document.title = waiting > 0 ? `(${waiting}) Perdure` : "Perdure"
  }, [waiting])
  return (
    <div class="frame" data-screen={route.value.screen}>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault()
        document.getElementById("main")?.focus()
      }}>Skip to the content</a>
      <Sidebar />
      <main id="main" tabIndex={-1}>
        {connection.value === "lost" && (
          <p class="banner warn" role="status">
            <Icon name="warn" /> The server does not answer. Trying again; nothing is lost.
          </p>
        )}
        {route.value.screen !== "session" && route.value.screen !== "sessions" && (
          <a class="button small home" href="#/"><Icon name="back" size={14} /> All Sessions</a>
        )}
        <Screen />
      </main>
      {isHelpOpen.value && <Help />}
    </div>
  )
}

function App(): JSX.Element {
  useEffect(() => void checkAccess(), [])
  return (
    <>
      {access.value === "open" ? <Frame /> : <LogIn />}
      <div class="problems" role="status" aria-live="polite">
        {problems.value.map((problem) => (
          <div class="problem" key={problem.id}>
            <Icon name="warn" />
            <span>{problem.text}</span>
            <button class="icon-button" aria-label="Dismiss" onClick={() => dismiss(problem.id)}>
              <Icon name="cross" size={14} />
            </button>
          </div>
        ))}
      </div>
    </>
  )
}

render(<App />, document.getElementById("app")!)
