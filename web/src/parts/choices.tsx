// The choice of a model, by provider.

import type { ModelInfo } from "perdure-client"
import type { JSX } from "preact"

export function ModelChoice(props: {
  models: readonly ModelInfo[]
  value: string
  empty?: string
  label?: string
  onChange: (value: string) => void
}): JSX.Element {
  const groups = new Map<string, ModelInfo[]>()
  for (const model of props.models) {
    if (!model.enabled) continue
    const group = groups.get(model.providerID) ?? []
    group.push(model)
    groups.set(model.providerID, group)
  }
  const isKnown = props.models.some((each) => `${each.providerID}/${each.id}` === props.value)
  return (
    <select
      value={props.value}
      aria-label={props.label}
      onChange={(event) => props.onChange(event.currentTarget.value)}
    >
      {props.empty !== undefined && <option value="">{props.empty}</option>}
      {props.value !== "" && !isKnown && <option value={props.value}>{props.value.split("/").slice(1).join("/")}</option>}
      {[...groups].map(([provider, models]) => (
        <optgroup key={provider} label={provider}>
          {models.map((model) => (
            <option key={model.id} value={`${provider}/${model.id}`}>{model.name}</option>
          ))}
        </optgroup>
      ))}
    </select>
  )
}
