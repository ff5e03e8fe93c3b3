// The few pictures of the page, as outlines of one width.

import type { JSX } from "preact"

const PATHS = {
  arrow: "M4 10h12M11 5l5 5-5 5",
  back: "M16 10H4m5-5-5 5 5 5",
  bolt: "M11 2 4 12h5l-1 6 7-10h-5z",
  chat: "M3 5.5A1.5 1.5 0 0 1 4.5 4h11A1.5 1.5 0 0 1 17 5.5v7a1.5 1.5 0 0 1-1.5 1.5H9l-4 3v-3h-.5A1.5 1.5 0 0 1 3 12.5z",
  check: "m4 10.5 4 4 8-9",
  chevron: "m7.5 5 5 5-5 5",
  clock: "M10 5.5V10l3 2M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0z",
  cross: "M5 5l10 10M15 5 5 15",
  down: "M10 4v12m-5-5 5 5 5-5",
  edit: "M12.5 4.5l3 3L7 16H4v-3zM11 6l3 3",
  eye: "M2.5 10S5 5 10 5s7.500 5 7.500 5-2.500 5-7.500 5-7.500-5-7.500-5zM12 10a2 2 0 1 1-4 0 2 2 0 0 1 4 0z",
  file: "M5 2.500h6.500L15 6v11.500H5zM11.500 2.500V6H15",
  fork: "M6 4v12M6 10c5 0 8-1 8-6M4.500 4h3M12.500 4h3M4.500 16h3",
  gear: "M10 12.500a2.500 2.500 0 1 0 0-5 2.500 2.500 0 0 0 0 5zM10 2.500v2M10 15.500v2M2.500 10h2M15.500 10h2M4.700 4.700l1.400 1.400M13.900 13.900l1.400 1.400M4.700 15.300l1.400-1.400M13.900 6.100l1.400-1.400",
  globe: "M17 10a7 7 0 1 1-14 0 7 7 0 0 1 14 0zM3 10h14M10 3c2.500 2.500 2.500 11.500 0 14M10 3c-2.500 2.500-2.500 11.500 0 14",
  heart: "M3 10.500h3l2-5 3.500 9 2-4H17",
  link: "M8.500 11.500l3-3M7 9 5 11a2.800 2.800 0 0 0 4 4l2-2M13 11l2-2a2.800 2.800 0 0 0-4-4L9 7",
  list: "M7 5h10M7 10h10M7 15h10M3 5h.01M3 10h.01M3 15h.01",
  menu: "M3 5.500h14M3 10h14M3 14.500h14",
  more: "M5 10h.01M10 10h.01M15 10h.01",
  pause: "M7 4.500v11M13 4.500v11",
  people: "M8 9a3 3 0 1 0 0-6 3 3 0 0 0 0 6zM2.500 17c0-3 2.500-5 5.500-5s5.500 2 5.500 5M13.500 3.500a3 3 0 0 1 0 5M15 12.500c1.600.8 2.500 2.400 2.500 4.500",
  play: "M6 4l10 6-10 6z",
  plus: "M10 4v12M4 10h12",
  search: "M13 13l4 4M14.500 9a5.500 5.500 0 1 1-11 0 5.500 5.500 0 0 1 11 0z",
  stop: "M5.500 5.500h9v9h-9z",
  terminal: "M3 4h14v12H3zM6 8l2.500 2L6 12M10.500 12.500H14",
  tool: "M12.500 3a4 4 0 0 0-4 5.300L3 13.800 6.200 17l5.500-5.500A4 4 0 0 0 17 7.500l-2.500 2-2.500-1-.500-2.500z",
  undo: "M7 4 3.500 7.500 7 11M3.500 7.500H12a4.500 4.500 0 0 1 0 9H8",
  up: "M10 16V4M5 9l5-5 5 5",
  warn: "M10 3 2.500 16.500h15zM10 8v4M10 14.300h.01",
} as const

export type IconName = keyof typeof PATHS

export function Icon(props: { name: IconName; size?: number }): JSX.Element {
  const size = props.size ?? 16
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 20 20" aria-hidden="true">
      <path
        d={PATHS[props.name]}
        fill="none"
        stroke="currentColor"
        stroke-width="1.6"
        stroke-linecap="round"
        stroke-linejoin="round"
      />
    </svg>
  )
}

export function Chevron(props: { open: boolean }): JSX.Element {
  return <span class={props.open ? "chevron open" : "chevron"}><Icon name="chevron" size={14} /></span>
}

export function Spinner(): JSX.Element {
  return <span class="spinner" role="status" aria-label="working" />
}
