// The keys of the page.

import type { JSX } from "preact"
import { isHelpOpen, KEYS } from "../lib/keys"
import { Dialog } from "../parts/dialog"

export function Help(): JSX.Element {
  return (
    <Dialog title="Keys" onClose={() => (isHelpOpen.value = false)}>
      <dl class="keys">
        {KEYS.map(([keys, does]) => (
          <div key={keys}>
            <dt>{keys.split(" ").map((key) => (key === "/" && keys !== "/" ? " / " : <kbd key={key}>{key}</kbd>))}</dt>
            <dd>{does}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  )
}
