// A long list of which only the rows in view are in the page. Rows may have any height, and grow.
// What is read stays where it is; at the end, the list follows what comes.

import type { ComponentChildren, JSX } from "preact"
import { useEffect, useLayoutEffect, useMemo, useReducer, useRef } from "preact/hooks"
import { Heights } from "../lib/heights"

const BEYOND = 900
const AT_END = 48

interface Props {
  readonly ids: readonly string[]
  readonly estimate: (id: string) => number
  readonly row: (id: string) => ComponentChildren
  /** Changes when a row may be another although the ids are the same. */
  readonly version: unknown
  readonly label: string
  readonly end?: ComponentChildren
  readonly start?: ComponentChildren
  /** The list stays at its end while it grows. */
  readonly follows: boolean
  readonly onStart?: () => void
  readonly focusID?: string | undefined
}

export function VirtualList(props: Props): JSX.Element {
  const { ids, estimate, row, label } = props
  const scroller = useRef<HTMLDivElement>(null)
  const place = useRef({ top: 0, height: 800, isAtEnd: true })
  const known = useRef(new Map<string, number>())
  const heights = useMemo(() => new Heights(), [])
  const shown = useRef<readonly string[]>([])
  const [, redraw] = useReducer((n: number, _: void) => n + 1, 0)

  const before = shown.current
  if (ids !== before) {
    const isGrown =
      ids.length >= before.length &&
      before.length > 0 &&
      ids[0] === before[0] &&
      ids[before.length - 1] === before[before.length - 1]
    const heightOf = (id: string): number => known.current.get(id) ?? estimate(id)
    if (isGrown) {
      for (let at = before.length; at < ids.length; at++) heights.push(heightOf(ids[at]!))
    } else {
      const first = before[heights.at(place.current.top)]
      const within = place.current.top - (heights.length ? heights.offset(heights.at(place.current.top)) : 0)
      heights.fill(ids.length, (at) => heightOf(ids[at]!))
      const again = first === undefined ? -1 : ids.indexOf(first)
      if (again >= 0 && !place.current.isAtEnd) {
        place.current.top = heights.offset(again) + within
        queueMicrotask(() => {
          if (scroller.current) scroller.current.scrollTop = place.current.top
        })
      }
    }
    shown.current = ids
  }

  const { top, height } = place.current
  const from = ids.length === 0 ? 0 : heights.at(Math.max(0, top - BEYOND))
  const to = ids.length === 0 ? 0 : Math.min(ids.length, heights.at(top + height + BEYOND) + 1)

  const observer = useMemo(
    () =>
      new ResizeObserver((entries) => {
        const element = scroller.current
        if (element === null) return
        const anchor = heights.length === 0 ? 0 : heights.at(place.current.top)
        let moved = 0
        let hasChanged = false
        for (const entry of entries) {
          const id = (entry.target as HTMLElement).dataset.row!
          const at = shown.current.indexOf(id, Math.max(0, anchor - 200))
          const now = (entry.target as HTMLElement).offsetHeight
          if (at < 0 || now === 0) continue
          known.current.set(id, now)
          const grown = heights.set(at, now)
          hasChanged ||= grown !== 0
          if (at < anchor) moved += grown
        }
        if (!hasChanged) return
        if (moved !== 0 && !place.current.isAtEnd) {
          place.current.top += moved
          element.scrollTop += moved
        }
        redraw()
      }),
    [],
  )
  useEffect(() => () => observer.disconnect(), [])

  const onScroll = (): void => {
    const element = scroller.current!
    place.current.top = element.scrollTop
    place.current.isAtEnd =
      element.scrollHeight - element.scrollTop - element.clientHeight < AT_END
    if (element.scrollTop < 1_500) props.onStart?.()
    redraw()
  }
  useLayoutEffect(() => {
    const element = scroller.current!
    place.current.height = element.clientHeight
    const sized = new ResizeObserver(() => {
      place.current.height = element.clientHeight
      if (place.current.isAtEnd && props.follows) element.scrollTop = element.scrollHeight
      redraw()
    })
    sized.observe(element)
    return () => sized.disconnect()
  }, [])
  useLayoutEffect(() => {
    const element = scroller.current!
    if (props.follows && place.current.isAtEnd) {
      element.scrollTop = element.scrollHeight
      place.current.top = element.scrollTop
    }
  })
  useLayoutEffect(() => {
    const at = props.focusID === undefined ? -1 : ids.indexOf(props.focusID)
    if (at < 0) return
    place.current.isAtEnd = false
    scroller.current!.scrollTop = heights.offset(at) - 24
    onScroll()
  }, [props.focusID])

  return (
    <div class="scroller" ref={scroller} onScroll={onScroll} tabIndex={0} role="region" aria-label={label}>
      {props.start}
      <div class="list" role="feed" aria-label={label} style={{ height: `${heights.total}px` }}>
        <div class="window" style={{ transform: `translateY(${heights.offset(from)}px)` }}>
          {ids.slice(from, to).map((id, at) => (
            <Row key={id} id={id} at={from + at} of={ids.length} observer={observer}>
              {row(id)}
            </Row>
          ))}
        </div>
      </div>
      {props.end}
    </div>
  )
}

function Row(props: {
  id: string
  at: number
  of: number
  observer: ResizeObserver
  children: ComponentChildren
}): JSX.Element {
  const element = useRef<HTMLElement>(null)
  useLayoutEffect(() => {
    const found = element.current!
    props.observer.observe(found)
    return () => props.observer.unobserve(found)
  }, [])
  return (
    <article
      class="row"
      data-row={props.id}
      ref={element}
      aria-posinset={props.at + 1}
      aria-setsize={props.of}
    >
      {props.children}
    </article>
  )
}
