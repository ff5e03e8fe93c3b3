// A screen whose part of the page is loaded when it is opened first.

import type { ComponentType, JSX } from "preact"
import { useEffect, useState } from "preact/hooks"
import { Spinner } from "./icons"

export function late<P extends object>(load: () => Promise<ComponentType<P>>): (props: P) => JSX.Element {
  let loaded: ComponentType<P> | undefined
  return function Late(props: P): JSX.Element {
    const [found, setFound] = useState<ComponentType<P> | "failed" | undefined>(() => loaded)
    useEffect(() => {
      if (loaded !== undefined) return
      load().then(
        (component) => {
          loaded = component
          setFound(() => component)
        },
        () => setFound("failed"),
      )
    }, [])
    if (found === "failed") return <p class="failure pad">This could not be loaded. Load the page again.</p>
    if (found === undefined) return <p class="pad"><Spinner /></p>
    const Found = found as ComponentType<object>
    return <Found {...props} />
  }
}
