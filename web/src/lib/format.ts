// Numbers, times and paths as people read them.

const RELATIVE = new Intl.RelativeTimeFormat("en", { numeric: "auto", style: "short" })
const UNITS: readonly [Intl.RelativeTimeFormatUnit, number][] = [
  ["year", 31_536_000_000],
  ["month", 2_592_000_000],
  ["week", 604_800_000],
  ["day", 86_400_000],
  ["hour", 3_600_000],
  ["minute", 60_000],
]

export function ago(millis: number, now = Date.now()): string {
  for (const [unit, size] of UNITS) {
    if (Math.abs(now - millis) >= size) return RELATIVE.format(-Math.round((now - millis) / size), unit)
  }
  return "just now"
}

export function clock(millis: number): string {
  return new Date(millis).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" })
}

export function moment(millis: number): string {
  return new Date(millis).toLocaleString([], { dateStyle: "medium", timeStyle: "medium" })
}

export function duration(millis: number): string {
  if (millis < 1_000) return `${Math.max(0, Math.round(millis))} ms`
  const seconds = millis / 1_000
  if (seconds < 60) return `${seconds < 10 ? seconds.toFixed(1) : Math.round(seconds)} s`
  const minutes = Math.floor(seconds / 60)
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`
}

export function count(value: number): string {
  if (value < 1_000) return String(value)
  if (value < 1_000_000) return `${(value / 1_000).toFixed(value < 10_000 ? 1 : 0)}k`
  return `${(value / 1_000_000).toFixed(1)}M`
}

export function money(dollars: number): string {
  if (dollars === 0) return "$0"
  return dollars < 0.01 ? `$${dollars.toFixed(4)}` : `$${dollars.toFixed(2)}`
}

export function bytes(size: number): string {
  const units = ["B", "KB", "MB", "GB"]
  let at = 0
  while (size >= 1_000 && at < units.length - 1) (size /= 1_000), at++
  return `${at === 0 ? size : size.toFixed(1)} ${units[at]}`
}

export const plural = (value: number, one: string, many = `${one}s`): string =>
  `${value} ${value === 1 ? one : many}`

/** The end of a path, which tells most. */
export function shortPath(path: string): string {
  const parts = path.split("/").filter((part) => part !== "")
  return parts.length <= 2 ? path : `…/${parts.slice(-2).join("/")}`
}

/** Characters that change how the text around them is read or hide in it, spelled out. */
const UNSEEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\u{e0000}-\u{e007f}]/gu

export function visible(text: string): string {
  return text.replace(UNSEEN, (found) => `⟨U+${found.codePointAt(0)!.toString(16).toUpperCase()}⟩`)
}

/** The visible part of a long text: its beginning and its end. */
export function clipped(text: string, max: number): string {
  if (text.length <= max) return text
  const half = Math.floor(max / 2)
  return `${text.slice(0, half)}\n… ${text.length - 2 * half} characters …\n${text.slice(-half)}`
}
