// One Session: its messages, what waits in it, and at its side what can be looked into.

import type { JSX } from "preact"
import { useEffect, useMemo, useState } from "preact/hooks"
import { attempt, client } from "../lib/api"
import { count, money, shortPath, visible } from "../lib/format"
import { isTyping, onKey } from "../lib/keys"
import { go, type Panel, PANELS, replace, route, sessionHash } from "../lib/route"
import { leaveTimeline, ShownSession } from "../lib/session"
import { Icon, type IconName, Spinner } from "../parts/icons"
import { late } from "../parts/late"
import { VirtualList } from "../parts/list"
import { Dialog } from "../parts/dialog"
import { RequestCard } from "./cards"
import { Composer } from "./composer"
import { type Actions, estimateHeight, Message } from "./transcript"

const MomentBar = late(() => import("./timeline").then((it) => it.MomentBar))
const TimelineRibbon = late(() => import("./timeline").then((it) => it.TimelineRibbon))
const ChangesPanel = late(() => import("./panels/changes").then((it) => it.ChangesPanel))
const ContextPanel = late(() => import("./panels/context").then((it) => it.ContextPanel))
const UsagePanel = late(() => import("./panels/usage").then((it) => it.UsagePanel))
const WorkPanel = late(() => import("./panels/work").then((it) => it.WorkPanel))
const ICONS: Record<Panel, IconName> = { context: "eye", changes: "edit", usage: "bolt", work: "list" }
export const NAMES: Record<Panel, string> = {
  context: "Context",
  changes: "Changes",
  usage: "Usage",
  work: "Work",
}

export function SessionScreen(props: { id: string }): JSX.Element {
  const session = useMemo(() => new ShownSession(props.id), [props.id])
  const { panel, at } = route.value
  useEffect(() => {
    session.start()
    return () => session.end()
  }, [session])
  session.version.value
  const { view } = session
  useEffect(() => {
    if (at !== undefined && view !== undefined && session.history.value === undefined) {
      void session.loadHistory()
    }
  }, [at, view !== undefined])
  useEffect(
    () =>
      onKey((event) => {
        if (event.ctrlKey && event.key === ".") {
          void attempt(() => client.sessions.interrupt({ sessionID: session.id }))
          return true
        }
        if (isTyping(event.target) || event.ctrlKey || event.metaKey || event.altKey) return false
        if (event.key === "t") return toggleTimeline(session), true
        const named = PANELS[Number(event.key) - 1]
        if (named !== undefined) return toggle(session.id, named), true
        if (event.key === "Escape" && session.history.value !== undefined) {
          leaveTimeline(session)
          return true
        }
        if (event.key === "Escape" && route.value.panel !== undefined) {
          toggle(session.id, route.value.panel)
          return true
        }
        return false
      }),
    [session],
  )
  if (session.isGone.value) return <div class="page"><p class="quiet">This Session was deleted.</p></div>
  if (view === undefined) {
    return session.problem.value === undefined ? (
      <div class="page loading" aria-busy="true"><Spinner /></div>
    ) : (
      <div class="page">
        <p class="failure" role="alert">{session.problem.value}</p>
        <button onClick={() => void session.load()}>Try again</button>
      </div>
    )
  }
  const history = session.history.value
  const isPast = history !== undefined && at !== undefined && at < history.lastSeq
  return (
    <div class={panel === undefined ? "session" : "session with-panel"}>
      <Head session={session} />
      <div class="session-main">
        {isPast && <MomentBar session={session} at={at} />}
        {isPast ? <Past session={session} at={at} /> : <Now session={session} />}
        {(history !== undefined || at !== undefined) && <TimelineRibbon session={session} at={at} />}
      </div>
      {panel !== undefined && (
        <aside class="panel" aria-label={NAMES[panel]}>
          <header>
            <h2>{NAMES[panel]}</h2>
            <button class="icon-button" aria-label="Close" onClick={() => toggle(session.id, panel)}><Icon name="cross" /></button>
          </header>
          {panel === "context" && <ContextPanel session={session} />}
          {panel === "changes" && <ChangesPanel session={session} />}
          {panel === "usage" && <UsagePanel session={session} />}
          {panel === "work" && <WorkPanel session={session} todos={isPast ? history.at(at).todos : view.todos} />}
        </aside>
      )}
    </div>
  )
}

function toggle(id: string, panel: Panel): void {
  replace(sessionHash(id, route.value.panel === panel ? undefined : panel, route.value.at))
}

function toggleTimeline(session: ShownSession): void {
  if (session.history.value === undefined) void session.loadHistory()
  else leaveTimeline(session)
}

function Head(props: { session: ShownSession }): JSX.Element {
  const { session } = props
  const view = session.view!
  const { info } = view
  const [title, setTitle] = useState<string | undefined>(undefined)
  const [isMenu, setMenu] = useState(false)
  const save = async (event: Event): Promise<void> => {
    event.preventDefault()
    const given = title!.trim()
    if (given !== "" && given !== info.title) {
      await attempt(() => client.sessions.rename({ sessionID: info.id, title: given }))
    }
    setTitle(undefined)
  }
  const tokens = info.tokens.input + info.tokens.cache.read + info.tokens.cache.write + info.tokens.output + info.tokens.reasoning
  return (
    <header class="session-head">
      <a class="icon-button back" href="#/" aria-label="All Sessions"><Icon name="back" /></a>
      <div class="titles">
        {title === undefined ? (
          <h1>
            <button class="title-button" title="Rename" onClick={() => setTitle(info.title)}><bdi>{visible(info.title)}</bdi></button>
          </h1>
        ) : (
          <form onSubmit={(event) => void save(event)}>
            <input
              aria-label="Title"
              value={title}
              ref={(element) => element?.focus()}
              onInput={(event) => setTitle(event.currentTarget.value)}
              onBlur={(event) => void save(event)}
              onKeyDown={(event) => event.key === "Escape" && setTitle(undefined)}
            />
          </form>
        )}
        <p class="sub">
          {info.parentID !== undefined && <a href={sessionHash(info.parentID)}>↑ parent</a>}
          <span title={info.location.directory}>{shortPath(info.location.directory)}</span>
          {tokens > 0 && <span>{count(tokens)} tokens</span>}
          {info.cost > 0 && <span>{money(info.cost)}</span>}
          {info.substitute !== undefined && <span class="warn-text" title={info.substitute.message}>answered by {info.substitute.model.id}</span>}
        </p>
      </div>
      <nav class="tabs" aria-label="Look into the Session">
        <button
          class="tab"
          aria-pressed={session.history.value !== undefined}
          title="Time line (t)"
          onClick={() => toggleTimeline(session)}
        >
          <Icon name="clock" /> <span>Time line</span>
        </button>
        {PANELS.map((panel, at) => (
          <button
            class="tab"
            key={panel}
            aria-pressed={route.value.panel === panel}
            title={`${NAMES[panel]} (${at + 1})`}
            onClick={() => toggle(info.id, panel)}
          >
            <Icon name={ICONS[panel]} /> <span>{NAMES[panel]}</span>
          </button>
        ))}
        <button class="icon-button" aria-label="More" aria-expanded={isMenu} onClick={() => setMenu(true)}><Icon name="more" /></button>
      </nav>
      {isMenu && <Menu session={session} onClose={() => setMenu(false)} />}
    </header>
  )
}

function Menu(props: { session: ShownSession; onClose: () => void }): JSX.Element {
  const { session, onClose } = props
  const { info } = session.view!
  const [isSure, setSure] = useState(false)
  const sessionID = info.id
  const isArchived = info.time.archived !== undefined
  const act = async (work: () => Promise<unknown>, to?: string): Promise<void> => {
    onClose()
    if ((await attempt(async () => (await work(), true))) && to !== undefined) go(to)
  }
  return (
    <Dialog title="This Session" onClose={onClose}>
      <div class="menu">
        <button onClick={() => void act(async () => go(sessionHash((await client.sessions.fork({ sessionID })).id)))}><Icon name="fork" /> Fork into a new Session</button>
        <button onClick={() => void act(() => client.sessions.compact({ sessionID }))}><Icon name="list" /> Summarise older messages</button>
        <button onClick={() => void act(() => (isArchived ? client.sessions.unarchive({ sessionID }) : client.sessions.archive({ sessionID })), "#/")}>
          <Icon name="file" /> {isArchived ? "Take out of the archive" : "Archive"}
        </button>
        {isSure ? (
          <button class="danger" onClick={() => void act(() => client.sessions.delete({ sessionID }), "#/")}>
            <Icon name="warn" /> Delete it and all that it holds, for good
          </button>
        ) : (
          <button onClick={() => setSure(true)}><Icon name="cross" /> Delete…</button>
        )}
      </div>
    </Dialog>
  )
}

function Now(props: { session: ShownSession }): JSX.Element {
  const { session } = props
  const view = session.view!
  const actions = useMemo<Actions>(
    () => ({
      fork: (messageID) =>
        void attempt(() => client.sessions.fork({ sessionID: session.id, messageID })).then((made) => made && go(sessionHash(made.id))),
      revert: (messageID) => void takeBack(session, messageID),
    }),
    [session],
  )
  const { revert } = view.info
  const ids = session.ids.value
  const kept = revert === undefined ? ids : ids.slice(0, ids.indexOf(revert.messageID) + 1)
  return (
    <>
      <VirtualList
        label="Messages"
        ids={kept}
        version={session.version.value}
        estimate={(id) => estimateHeight(view.messages.get(id))}
        row={(id) => <Message message={view.messages.get(id)!} isBusy={view.isBusy} actions={actions} />}
        follows
        start={ids.length === 0 ? <Empty session={session} /> : undefined}
        end={<Foot session={session} />}
      />
      {revert !== undefined ? <Staged session={session} /> : <Composer session={session} />}
    </>
  )
}

/** Revert to the message before the prompt, so that the prompt is gone as well. */
async function takeBack(session: ShownSession, messageID: string): Promise<void> {
  const ids = session.view!.messages.ids
  const before = ids[ids.indexOf(messageID) - 1] ?? messageID
  const done = await attempt(() => client.sessions.revert.stage({ sessionID: session.id, messageID: before }))
  if (done !== undefined) go(sessionHash(session.id, "changes"))
}

function Empty(props: { session: ShownSession }): JSX.Element {
  return (
    <div class="hello small">
      <p class="quiet">Nothing was said yet. This Session works in</p>
      <p><code>{props.session.view!.info.location.directory}</code></p>
    </div>
  )
}

function Foot(props: { session: ShownSession }): JSX.Element {
  const { session } = props
  const view = session.view!
  const { status } = view
  return (
    <div class="foot">
      {[...view.requests.values()].map((request) => <RequestCard key={request.id} request={request} sessionID={session.id} />)}
      {status.type === "idle" && status.outcome === "waiting" && <Recovery session={session} message={status.message ?? ""} />}
      {status.type === "idle" && status.outcome === "failed" && status.message !== undefined && (
        <p class="failure" role="alert"><Icon name="warn" size={15} /> {visible(status.message)}</p>
      )}
      {status.type === "retry" && <Retry message={status.message} next={status.next} />}
      {view.isBusy && view.notice !== "" && <p class="thinking"><span class="pulse" /> {visible(view.notice)}</p>}
    </div>
  )
}

function Retry(props: { message: string; next: number }): JSX.Element {
  const [now, setNow] = useState(Date.now())
  useEffect(() => {
    const timer = setInterval(() => setNow(Date.now()), 1_000)
    return () => clearInterval(timer)
  }, [])
  const seconds = Math.max(0, Math.round((props.next - now) / 1_000))
  return <p class="thinking"><Icon name="clock" size={15} /> {visible(props.message)} · again in {seconds} s</p>
}

function Recovery(props: { session: ShownSession; message: string }): JSX.Element {
  const decide = (decision: "retry" | "abandon"): void =>
    void attempt(() => client.sessions.recovery.decide({ sessionID: props.session.id, decision }))
  return (
    <section class="card request" aria-label="Decision after a crash">
      <header><Icon name="warn" /><h3>A run was interrupted</h3></header>
      <p>{visible(props.message)}</p>
      <div class="actions">
        <button class="primary" onClick={() => decide("retry")}>Send it again</button>
        <button onClick={() => decide("abandon")}>Leave it</button>
      </div>
    </section>
  )
}

function Staged(props: { session: ShownSession }): JSX.Element {
  const { session } = props
  const { revert } = session.view!.info
  const conflicts = revert?.conflicts ?? []
  return (
    <section class="staged" aria-label="Staged revert">
      <p>
        <Icon name="undo" /> What came after this is taken back, with {(revert?.files ?? []).length} files.
        {conflicts.length > 0 && <strong> {conflicts.length} were changed by others and are left alone.</strong>}
      </p>
      <span class="row-actions">
        <button class="small primary" onClick={() => void attempt(() => client.sessions.revert.commit({ sessionID: session.id }))}>Make it final</button>
        <button class="small" onClick={() => void attempt(() => client.sessions.revert.clear({ sessionID: session.id }))}>Restore all</button>
      </span>
    </section>
  )
}

function Past(props: { session: ShownSession; at: number }): JSX.Element {
  const { session, at } = props
  const history = session.history.value!
  const then = history.at(at)
  return (
    <VirtualList
      label={`Messages at event ${at}`}
      ids={then.ids}
      version={at}
      estimate={(id) => estimateHeight(then.message(id))}
      row={(id) => {
        const message = then.message(id)
        return message === undefined ? null : <Message message={message} isBusy={true} actions={undefined} />
      }}
      follows
    />
  )
}
