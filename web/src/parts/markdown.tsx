// Markdown in the page: whole, or while it is written.

import type { JSX } from "preact"
import { useLayoutEffect, useRef } from "preact/hooks"
import { markdown, Streamed } from "../lib/markdown"
import { visible } from "../lib/format"

const CHARS_MAX = 200_000

export function Markdown(props: { text: string; isOpen?: boolean | undefined }): JSX.Element {
  const into = useRef<HTMLDivElement>(null)
  const streamed = useRef<Streamed | null>(null)
  const text = visible(props.text.slice(0, CHARS_MAX))
  useLayoutEffect(() => {
    const element = into.current!
    if (props.isOpen) {
      streamed.current ??= new Streamed(element)
      streamed.current.show(text)
      return
    }
    streamed.current = null
    element.replaceChildren(...markdown(text))
  }, [text, props.isOpen])
  return <div class="md" ref={into} dir="auto" />
}
