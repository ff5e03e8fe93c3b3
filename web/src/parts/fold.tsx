// Something that is opened with a button.

import type { ComponentChildren, JSX } from "preact"
import { useState } from "preact/hooks"
import { Chevron } from "./icons"

export function Fold(props: {
  title: ComponentChildren
  note?: string
  tags?: readonly string[]
  children: ComponentChildren
}): JSX.Element {
  const [isOpen, setOpen] = useState(false)
  return (
    <div class="foldable">
      <button class="fold" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
        <Chevron open={isOpen} /> <span class="fold-title">{props.title}</span>
        {props.note !== undefined && <span class="first">{props.note}</span>}
        {props.tags?.map((tag) => <span class="tag" key={tag}>{tag}</span>)}
      </button>
      {isOpen && <div class="fold-body">{props.children}</div>}
    </div>
  )
}
