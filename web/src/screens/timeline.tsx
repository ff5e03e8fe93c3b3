// The past of a Session: a ribbon of everything that happened, along which one moves. The rest of
// the screen shows the Session as it was then.

import type { JSX } from "preact"
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks"
import { attempt, client } from "../lib/api"
import { clock, moment, plural, visible } from "../lib/format"
import { isTyping, onKey } from "../lib/keys"
import { go, replace, route, sessionHash } from "../lib/route"
import { leaveTimeline, type ShownSession } from "../lib/session"
import type { History, Lane } from "../fold/history"
import { kindOf } from "../fold/types"
import { Icon } from "../parts/icons"

const LANES: readonly (readonly [Lane, string])[] = [
  ["prompt", "Prompts"],
  ["turn", "Turns"],
  ["tool", "Tools"],
  ["person", "Questions"],
  ["child", "Subagents"],
  ["context", "Context"],
  ["compaction", "Summaries"],
]
const LANE_HEIGHT = 13
const SPEEDS = [1, 4, 16] as const
/** A longer pause is shown as a short one, on the scale of the clock. */
const IDLE_MILLIS = 20_000

type Scale = "sequence" | "clock"

export function TimelineRibbon(props: { session: ShownSession; at: number | undefined }): JSX.Element | null {
  const { session, at } = props
  const history = session.history.value
  session.version.value
  const [scale, setScale] = useState<Scale>("sequence")
  const [speed, setSpeed] = useState<number | undefined>(undefined)
  const last = history?.lastSeq ?? 0
  const seq = Math.min(at ?? last, last)
  const seek = (to: number | undefined): void => {
    const shown = to === undefined || to >= last ? last : Math.max(history!.firstSeq, to)
    replace(sessionHash(session.id, route.value.panel, shown))
  }
  const step = (by: number): void => {
    const place = history!.indexOf(seq) + by
    seek(history!.seqs[Math.max(0, Math.min(history!.seqs.length - 1, place))])
  }
  useEffect(
    () =>
      onKey((event) => {
        if (history === undefined || isTyping(event.target) || event.ctrlKey || event.metaKey) return false
        const by = event.shiftKey ? 10 : 1
        if (event.key === "ArrowLeft") step(-by)
        else if (event.key === "ArrowRight") step(by)
        else if (event.key === "Home") seek(history.firstSeq)
        else if (event.key === "End") seek(last)
        else return false
        return true
      }),
    [history, seq, last],
  )
  useEffect(() => {
    if (speed === undefined || history === undefined) return
    const timer = setInterval(() => {
      if (seq >= last) setSpeed(undefined)
      else step(1)
    }, 400 / speed)
    return () => clearInterval(timer)
  }, [speed, seq, last])
  if (history === undefined) {
    return (
      <section class="timeline" aria-label="Time line" aria-busy={session.historyProblem.value === undefined}>
        <p class="quiet pad">{session.historyProblem.value ?? "Reading the log…"}</p>
      </section>
    )
  }
  const place = history.indexOf(seq)
  const event = history.events[place]
  return (
    <section class="timeline" aria-label="Time line">
      <div class="timeline-bar">
        <button class="icon-button" aria-label="One event back" title="One event back (←)" onClick={() => step(-1)}><Icon name="back" size={15} /></button>
        <button
          class="icon-button"
          aria-label={speed === undefined ? "Play" : "Pause"}
          title={speed === undefined ? "Play" : "Pause"}
          onClick={() => {
            if (speed === undefined && seq >= last) seek(history.firstSeq)
            setSpeed(speed === undefined ? 1 : undefined)
          }}
        >
          <Icon name={speed === undefined ? "play" : "pause"} size={15} />
        </button>
        <button class="icon-button" aria-label="One event on" title="One event on (→)" onClick={() => step(1)}><Icon name="arrow" size={15} /></button>
        {speed !== undefined && (
          <span class="segments" role="group" aria-label="Speed">
            {SPEEDS.map((each) => <button key={each} aria-pressed={speed === each} onClick={() => setSpeed(each)}>{each}×</button>)}
          </span>
        )}
        <span class="where">
          <strong>{place + 1}</strong> of {history.seqs.length}
          <span class="quiet" title={moment(history.times[place] ?? 0)}>{clock(history.times[place] ?? 0)}</span>
          {event !== undefined && <code>{kindOf(event)}</code>}
        </span>
        <span class="spacer" />
        <span class="segments" role="group" aria-label="Scale">
          <button aria-pressed={scale === "sequence"} onClick={() => setScale("sequence")}>Events</button>
          <button aria-pressed={scale === "clock"} onClick={() => setScale("clock")}>Clock</button>
        </span>
        <button class="icon-button" aria-label="Close the time line" title="Close (t)" onClick={() => leaveTimeline(session)}><Icon name="cross" size={14} /></button>
      </div>
      <Ribbon history={history} seq={seq} scale={scale} onSeek={seek} />
    </section>
  )
}

/** What can be done from the moment that is shown. */
export function MomentBar(props: { session: ShownSession; at: number }): JSX.Element | null {
  const { session, at } = props
  const history = session.history.value
  const [isCopied, setCopied] = useState(false)
  if (history === undefined || at >= history.lastSeq) return null
  const shown = history.at(at)
  const boundary = [...shown.ids].reverse().find((id) => session.view!.messages.get(id) !== undefined)
  const fork = async (): Promise<void> => {
    const made = await attempt(() => client.sessions.fork({ sessionID: session.id, seq: at }))
    if (made !== undefined) go(sessionHash(made.id))
  }
  const revert = async (): Promise<void> => {
    const done = await attempt(() => client.sessions.revert.stage({ sessionID: session.id, messageID: boundary! }))
    if (done !== undefined) {
      leaveTimeline(session)
      go(sessionHash(session.id, "changes"))
    }
  }
  const copy = async (): Promise<void> => {
    const done = await attempt(() => navigator.clipboard.writeText(`${location.origin}/${sessionHash(session.id, undefined, at)}`))
    setCopied(done === undefined)
  }
  return (
    <div class="banner past" role="status">
      <span><Icon name="clock" size={15} /> As it was {moment(shown.time)}, {plural(history.seqs.length - 1 - history.indexOf(at), "event")} ago</span>
      <span class="row-actions">
        <button class="small" onClick={() => void fork()}><Icon name="fork" size={14} /> Fork here</button>
        <button class="small" disabled={boundary === undefined || session.view!.isBusy} onClick={() => void revert()}><Icon name="undo" size={14} /> Revert to here</button>
        <button class="small" onClick={() => void copy()}><Icon name="link" size={14} /> {isCopied ? "Copied" : "Copy link"}</button>
        <button class="small" onClick={() => leaveTimeline(session)}>Back to now</button>
      </span>
    </div>
  )
}

function Ribbon(props: {
  history: History
  seq: number
  scale: Scale
  onSeek: (seq: number) => void
}): JSX.Element {
  const { history, seq, scale, onSeek } = props
  const canvas = useRef<HTMLCanvasElement>(null)
  const [width, setWidth] = useState(600)
  const [tip, setTip] = useState("")
  const lanes = LANES.filter(([lane]) => history.bars.some((bar) => bar.lane === lane))
  const height = Math.max(1, lanes.length) * LANE_HEIGHT + 14
  const positions = scale === "sequence" ? undefined : squeezed(history.times)
  const end = positions === undefined ? Math.max(1, history.seqs.length - 1) : Math.max(1, positions.at(-1)!)
  const xOf = (at: number): number => {
    const place = history.indexOf(at)
    return ((positions === undefined ? place : positions[place]!) / end) * (width - 12) + 6
  }
  const seqAt = (x: number): number => {
    const wanted = (Math.max(0, Math.min(width - 12, x - 6)) / (width - 12)) * end
    if (positions === undefined) return history.seqs[Math.round(wanted)]!
    let place = 0
    while (place < positions.length - 1 && positions[place + 1]! <= wanted) place++
    return history.seqs[place]!
  }
  useLayoutEffect(() => {
    const element = canvas.current!.parentElement!
    const sized = new ResizeObserver(() => setWidth(element.clientWidth))
    sized.observe(element)
    return () => sized.disconnect()
  }, [])
  useLayoutEffect(() => {
    const element = canvas.current!
    const ratio = devicePixelRatio || 1
    element.width = width * ratio
    element.height = height * ratio
    element.style.width = `${width}px`
    element.style.height = `${height}px`
    const pen = element.getContext("2d")!
    pen.scale(ratio, ratio)
    draw(pen, { history, lanes: lanes.map(([lane]) => lane), width, height, seq, xOf })
  }, [history, history.seqs.length, width, height, seq, scale, dark()])
  const onPointer = (event: PointerEvent): void => {
    const box = canvas.current!.getBoundingClientRect()
    if (event.type === "pointerdown") canvas.current!.setPointerCapture(event.pointerId)
    const found = seqAt(event.clientX - box.left)
    if (event.buttons === 1) onSeek(found)
    const lane = lanes[Math.floor((event.clientY - box.top - 4) / LANE_HEIGHT)]?.[0]
    const bar = history.bars.findLast((each) => each.lane === lane && each.from <= found && (each.to ?? Infinity) >= found)
    setTip(bar === undefined ? "" : `${bar.label}${bar.failed ? " (failed)" : ""}`)
  }
  return (
    <div class="ribbon">
      <div class="lanes" aria-hidden="true">{lanes.map(([lane, name]) => <span key={lane}>{name}</span>)}</div>
      <div
        class="track"
        role="slider"
        tabIndex={0}
        aria-label="Moment of the Session"
        aria-valuemin={history.firstSeq}
        aria-valuemax={history.lastSeq}
        aria-valuenow={seq}
        aria-valuetext={`Event ${history.indexOf(seq) + 1} of ${history.seqs.length}, ${clock(history.times[history.indexOf(seq)] ?? 0)}`}
        title={visible(tip)}
      >
        <canvas ref={canvas} onPointerDown={onPointer} onPointerMove={onPointer} />
      </div>
    </div>
  )
}

const dark = (): boolean => matchMedia("(prefers-color-scheme: dark)").matches

function draw(
  pen: CanvasRenderingContext2D,
  what: { history: History; lanes: readonly Lane[]; width: number; height: number; seq: number; xOf: (seq: number) => number },
): void {
  const style = getComputedStyle(document.documentElement)
  const colour = (name: string): string => style.getPropertyValue(`--${name}`).trim()
  const { history, lanes, width, height, seq, xOf } = what
  pen.clearRect(0, 0, width, height)
  pen.fillStyle = colour("line")
  for (let at = 0; at < lanes.length; at++) pen.fillRect(6, 4 + at * LANE_HEIGHT + LANE_HEIGHT / 2 - 0.5, width - 12, 1)
  const colours: Record<Lane, string> = {
    prompt: colour("accent"),
    turn: colour("lane-turn"),
    tool: colour("lane-tool"),
    person: colour("wait"),
    child: colour("lane-child"),
    context: colour("quiet"),
    compaction: colour("lane-summary"),
  }
  const now = xOf(seq)
  for (const bar of history.bars) {
    const lane = lanes.indexOf(bar.lane)
    if (lane < 0) continue
    const from = xOf(bar.from)
    const to = xOf(bar.to ?? history.lastSeq)
    pen.globalAlpha = bar.from > seq ? 0.3 : 1
    pen.fillStyle = bar.failed ? colour("bad") : colours[bar.lane]
    const top = 4 + lane * LANE_HEIGHT + 2
    pen.beginPath()
    pen.roundRect(from - (bar.from === bar.to ? 2 : 0), top, Math.max(4, to - from), LANE_HEIGHT - 4, 2)
    pen.fill()
  }
  pen.globalAlpha = 1
  pen.fillStyle = colour("text")
  pen.fillRect(now - 0.75, 0, 1.5, height)
  pen.beginPath()
  pen.arc(now, height - 5, 4.5, 0, 7)
  pen.fill()
}

/** Positions on a scale of time on which long pauses are short. */
function squeezed(times: readonly number[]): number[] {
  const positions = [0]
  for (let at = 1; at < times.length; at++) {
    const passed = Math.max(0, times[at]! - times[at - 1]!)
    positions.push(positions[at - 1]! + Math.min(passed, IDLE_MILLIS))
  }
  return positions
}
