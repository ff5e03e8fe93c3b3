// A dialog over the page. It takes the focus, keeps it, and gives it back.

import type { ComponentChildren, JSX } from "preact"
import { useLayoutEffect, useRef } from "preact/hooks"
import { Icon } from "./icons"

export function Dialog(props: {
  title: string
  onClose: () => void
  children: ComponentChildren
}): JSX.Element {
  const element = useRef<HTMLDialogElement>(null)
  useLayoutEffect(() => {
    const before = document.activeElement as HTMLElement | null
    const dialog = element.current!
    dialog.showModal()
    return () => {
      dialog.close()
      before?.focus()
    }
  }, [])
  return (
    <dialog
      ref={element}
      aria-label={props.title}
      onCancel={(event) => {
        event.preventDefault()
        props.onClose()
      }}
      onClick={(event) => event.target === element.current && props.onClose()}
    >
      <header>
        <h2>{props.title}</h2>
        <button class="icon-button" aria-label="Close" onClick={props.onClose}>
          <Icon name="cross" />
        </button>
      </header>
      <div class="dialog-body">{props.children}</div>
    </dialog>
  )
}
