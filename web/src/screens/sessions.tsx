// All Sessions: a list at the side, and what waits for a person as the first screen.

import type { SessionInfo } from "perdure-client"
import type { JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { attempt, authorization, client, logOut } from "../lib/api"
import { ago, money, plural, shortPath, visible } from "../lib/format"
import { isHelpOpen } from "../lib/keys"
import { route, sessionHash } from "../lib/route"
import {
  attention,
  isArchive,
  isLoaded,
  isRunning,
  loadMore,
  loadSessions,
  nextPage,
  search,
  sessions,
  sorted,
  waitingCount,
  waitsIn,
} from "../lib/sessions"
import { Icon, type IconName, Spinner } from "../parts/icons"
import { Mark } from "../parts/mark"
import { RequestCard } from "./cards"

function Item(props: { session: SessionInfo }): JSX.Element {
  const { session } = props
  const waits = waitsIn(session.id)
  const isCurrent = route.value.sessionID === session.id
  return (
    <li>
      <a href={sessionHash(session.id)} aria-current={isCurrent ? "page" : undefined}>
        <span class="state">
          {waits > 0 ? <span class="dot wait" role="img" aria-label="waits for you" /> : isRunning(session.id) ? <Spinner /> : <span class="dot" />}
        </span>
        <span class="title"><bdi>{visible(session.title)}</bdi></span>
        <span class="meta">
          {waits > 0 ? <strong>{plural(waits, "request")}</strong> : ago(session.time.updated)}
          <span class="place" title={session.location.directory}>{session.location.directory.split("/").at(-1)}</span>
        </span>
      </a>
    </li>
  )
}

export function Sidebar(): JSX.Element {
  useEffect(() => {
    const timer = setTimeout(() => void loadSessions(), search.value === "" ? 0 : 200)
    return () => clearTimeout(timer)
  }, [search.value, isArchive.value])
  return (
    <nav class="sidebar" aria-label="Sessions">
      <header>
        <a class="brand" href="#/"><Mark size={24} /> Perdure</a>
        <a class="button small" href="#/new" title="New Session (n)"><Icon name="plus" size={14} /> New</a>
      </header>
      <label class="search">
        <Icon name="search" size={15} />
        <input
          id="search"
          type="search"
          placeholder="Search"
          aria-label="Search titles and messages"
          value={search.value}
          onInput={(event) => (search.value = event.currentTarget.value)}
        />
      </label>
      <ul class="sessions">
        {sorted.value.map((session) => <Item key={session.id} session={session} />)}
        {isLoaded.value && sessions.value.length === 0 && (
          <li class="empty">{search.value !== "" ? "Nothing is found." : isArchive.value ? "Nothing is archived." : "There is no Session yet."}</li>
        )}
        {nextPage.value !== undefined && (
          <li><button class="link pad" onClick={() => void loadMore()}>Show older ones</button></li>
        )}
      </ul>
      <footer>
        <button class="link" aria-pressed={isArchive.value} onClick={() => (isArchive.value = !isArchive.value)}>
          {isArchive.value ? "Back from the archive" : "Archive"}
        </button>
        <span class="spacer" />
        <Place to="#/terminal" name="Terminals" icon="terminal" screen="terminal" />
        <Place to="#/health" name="Health" icon="heart" screen="health" />
        <Place to="#/settings" name="Settings" icon="gear" screen="settings" />
        <button class="icon-button" aria-label="Keys" title="Keys (?)" onClick={() => (isHelpOpen.value = true)}>?</button>
        {authorization.value !== null && (
          <button class="icon-button" aria-label="Log out" title="Log out" onClick={logOut}><Icon name="arrow" /></button>
        )}
      </footer>
    </nav>
  )
}

function Place(props: { to: string; name: string; icon: IconName; screen: string }): JSX.Element {
  return (
    <a
      class="icon-button"
      href={props.to}
      title={props.name}
      aria-label={props.name}
      aria-current={route.value.screen === props.screen ? "page" : undefined}
    >
      <Icon name={props.icon} />
    </a>
  )
}

/** What waits first, then what runs, then the newest. */
export function Overview(): JSX.Element {
  const waiting = [...attention.value.values()].filter((each) => waitsIn(each.sessionID) > 0)
  const running = sorted.value.filter((each) => isRunning(each.id) && waitsIn(each.id) === 0)
  const recent = sorted.value.filter((each) => !isRunning(each.id) && waitsIn(each.id) === 0)
  return (
    <div class="page overview">
      <header class="page-head">
        <h1>{waitingCount.value > 0 ? `${plural(waitingCount.value, "request waits", "requests wait")} for you` : "Sessions"}</h1>
        <a class="button primary" href="#/new"><Icon name="plus" size={15} /> New Session</a>
      </header>
      {waiting.map((each) => (
        <section class="waiting" key={each.sessionID}>
          <TitleOf id={each.sessionID} />
          {[...each.permissions, ...each.questions].map((request) => (
            <RequestCard key={request.id} request={request} sessionID={each.sessionID} />
          ))}
          {each.recovery?.waiting && (
            <p class="card recovery"><Icon name="warn" /> {each.recovery.message} <a href={sessionHash(each.sessionID)}>Decide</a></p>
          )}
        </section>
      ))}
      {running.length > 0 && (
        <section>
          <h2>Working now</h2>
          <Rows sessions={running} />
        </section>
      )}
      {recent.length > 0 && (
        <section>
          <h2>{isArchive.value ? "Archived" : "Recent"}</h2>
          <Rows sessions={recent.slice(0, 30)} />
        </section>
      )}
      {isLoaded.value && sessions.value.length === 0 && (
        <div class="hello">
          <Mark size={56} />
          <h2>A durable home for conversations with agents</h2>
          <p class="quiet">Everything that happens in a Session is kept. Look at any moment again, and go on from there.</p>
          <a class="button primary" href="#/new">Start the first Session</a>
        </div>
      )}
    </div>
  )
}

function TitleOf(props: { id: string }): JSX.Element {
  const known = sessions.value.find((each) => each.id === props.id)
  const [found, setFound] = useState<SessionInfo | undefined>(known)
  useEffect(() => {
    if (known === undefined) {
      void attempt(() => client.sessions.get({ sessionID: props.id })).then(setFound)
    }
  }, [props.id])
  const session = known ?? found
  return (
    <h2>
      <a href={sessionHash(session?.parentID ?? props.id)}><bdi>{visible(session?.title ?? "…")}</bdi></a>
      <span class="quiet">{session && shortPath(session.location.directory)}</span>
    </h2>
  )
}

function Rows(props: { sessions: readonly SessionInfo[] }): JSX.Element {
  return (
    <ul class="rows">
      {props.sessions.map((session) => (
        <li key={session.id}>
          <a href={sessionHash(session.id)}>
            <span class="title">{isRunning(session.id) && <Spinner />}<bdi>{visible(session.title)}</bdi></span>
            <span class="place">{shortPath(session.location.directory)}</span>
            <span class="model">{session.model?.id ?? ""}</span>
            <span class="cost">{session.cost > 0 ? money(session.cost) : ""}</span>
            <span class="when">{ago(session.time.updated)}</span>
          </a>
        </li>
      ))}
    </ul>
  )
}
