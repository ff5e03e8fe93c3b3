// The sign of Perdure.

import type { JSX } from "preact"

export function Mark(props: { size: number }): JSX.Element {
  return (
    <svg class="mark" width={props.size} height={props.size} viewBox="0 0 32 32" aria-hidden="true">
      <rect width="32" height="32" rx="8" />
      <path d="M10 8v16M10 10h6.500a5 5 0 0 1 0 10H10" />
      <circle cx="23.500" cy="23" r="2" />
    </svg>
  )
}
