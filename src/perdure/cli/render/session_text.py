"""A Session's events as text for people: what `perdure run` and `perdure show` print.

The assistant's text goes to stdout, everything else to stderr, so that a pipe gets the answer
alone. On a terminal the text is rendered as Markdown, and reasoning is shown dimmed; in a pipe the
text stays as the model wrote it. Text from a model or a tool is cleaned of control sequences.
"""

import sys
from typing import TYPE_CHECKING, cast

from perdure.cli import terminal
from perdure.cli.style import Span, Style
from perdure.cli.terminal import Cleaner, one_line
from perdure.host.clock import SystemClock
from perdure.schema.codec import JsonObject
from perdure.schema.value import State

if TYPE_CHECKING:
    from perdure.cli.render.markdown import MarkdownText


class Totals(State):
    """What the shown steps have used."""

    turns: int = 0
    tokens: int = 0
    cached: int = 0
    cost: float = 0.0


class _OpenCall(State):
    tool: str
    input: JsonObject


class SessionText:
    """Prints the events of one Session."""

    def __init__(self, *, is_log: bool = False) -> None:
        """`is_log`: the events are read from a log, so prompts are shown, and all on stdout."""
        self.totals = Totals()
        self._is_log = is_log
        self._header = ""
        self._cleaner = Cleaner()
        self._has_deltas = False
        """Whether deltas of the current text were shown."""
        self._line_is_open = False
        self._markdown: MarkdownText | None = None
        self._calls: dict[tuple[str, str], _OpenCall] = {}

    @property
    def status(self) -> str | None:
        """What the work waits for at the moment; None in the middle of a line."""
        if self._line_is_open:
            return None
        if self._calls:
            return f"running {next(iter(self._calls.values())).tool}"
        return f"waiting for {self._header.rpartition(' ')[2] or 'the model'}"

    def remember(self, event: JsonObject) -> None:
        """Keep the calls of an earlier process, so that what came of them can be named."""
        data = cast("JsonObject", event["data"])
        match event["type"]:
            case "session.next.tool.called":
                self._calls[_call_key(data)] = _OpenCall(data["tool"], data["input"])
            case "session.next.tool.success" | "session.next.tool.failed":
                self._calls.pop(_call_key(data), None)
            case _:
                pass

    def show(self, event: JsonObject) -> None:
        data = cast("JsonObject", event["data"])
        kind = str(event["type"]).removeprefix("session.next.")
        match kind:
            case "step.started":
                self._show_header(data)
            case "text.started" | "reasoning.started":
                self._begin_text()
            case "text.delta":
                self._has_deltas = True
                self._print_text(data["delta"])
            case "text.ended":
                if not self._has_deltas:
                    self._print_text(data["text"])
                self._end_text()
            case "reasoning.delta" | "reasoning.ended":
                self._show_reasoning(kind, data)
            case "step.ended":
                self._count(data)
            case _:
                self._show_note(kind, data)

    def finish(self) -> None:
        self._end_text()

    def _show_note(self, kind: str, data: JsonObject) -> None:
        match kind:
            case "tool.called":
                self._show_call(data)
            case "tool.success" | "tool.failed":
                self._show_result(kind, data)
            case "retried":
                self._print_note(
                    f"  {_format_wait(data)}: {data['error']['message']}", Style.YELLOW
                )
            case "compaction.started":
                self._print_note("  older messages are being summarised to free context", Style.DIM)
            case "compaction.ended":
                self._print_note("  older messages are summarised", Style.DIM)
            case _:
                if self._is_log:
                    self._show_past(kind, data)

    def _show_past(self, kind: str, data: JsonObject) -> None:
        """Show what a user who follows a run knows, and a reader of its log does not."""
        match kind:
            case "prompted":
                self._print_note(f"\n> {data['prompt'].get('text', '')}", Style.BOLD)
            case "step.failed":
                self._print_note(f"  failed: {data['error']['message']}", Style.RED)
            case "revert.staged":
                self._print_note("  undone; `perdure redo` restores it", Style.YELLOW)
            case "revert.cleared":
                self._print_note("  restored", Style.YELLOW)
            case _:
                pass

    def _show_header(self, data: JsonObject) -> None:
        model = data["model"]
        header = f"{data['agent']} · {model['providerID']}/{model['id']}"
        if header != self._header:
            self._header = header
            self._print_note(header, Style.DIM)

    def _show_call(self, data: JsonObject) -> None:
        # Imported late: a plain answer does not need it.
        from perdure.cli.render import tool_calls

        self._calls[_call_key(data)] = _OpenCall(data["tool"], data["input"])
        self._print_note(f"> {tool_calls.describe_call(data['tool'], data['input'])}", Style.CYAN)

    def _show_result(self, kind: str, data: JsonObject) -> None:
        from perdure.cli.render import tool_calls

        call = self._calls.pop(_call_key(data), None) or _OpenCall("tool", {})
        if kind == "tool.failed":
            self._print_note(f"  {call.tool} failed: {data['error']['message']}", Style.RED)
            return
        result = tool_calls.describe_result(call.tool, data.get("structured"))
        self._print_note(f"  {call.tool} done{f': {result}' if result else ''}", Style.DIM)
        for _, patch in tool_calls.list_patches(call.tool, call.input, data.get("structured")):
            spans = tool_calls.render_diff(patch)
            terminal.print_spans(spans, as_note=not self._is_log)

    def _show_reasoning(self, kind: str, data: JsonObject) -> None:
        if not terminal.is_output_terminal() or not sys.stderr.isatty():
            return
        is_delta = kind == "reasoning.delta"
        if is_delta or not self._has_deltas:
            self._has_deltas = True
            shown = self._cleaner.feed(data["delta" if is_delta else "text"])
            terminal.print_spans([Span(shown, Style.DIM)], as_note=not self._is_log)
        if not is_delta:
            terminal.print_spans([Span("\n")], as_note=not self._is_log)
            self._begin_text()

    def _count(self, data: JsonObject) -> None:
        tokens, cache = data["tokens"], data["tokens"]["cache"]
        read = tokens["input"] + cache["read"] + cache["write"]
        self.totals.turns += 1
        self.totals.tokens += read + tokens["output"] + tokens["reasoning"]
        self.totals.cached += cache["read"]
        self.totals.cost += data["cost"]

    def _begin_text(self) -> None:
        self._end_text()
        self._cleaner, self._has_deltas = Cleaner(), False

    def _print_text(self, text: str) -> None:
        shown = self._cleaner.feed(text)
        if not shown:
            return
        if terminal.is_output_terminal():
            if self._markdown is None:
                # Imported late: only a terminal needs it.
                from perdure.cli.render.markdown import MarkdownText

                self._markdown = MarkdownText()
            self._print_spans(self._markdown.feed(shown))
            return
        self._line_is_open = not shown.endswith("\n")
        terminal.print_output(shown)
        sys.stdout.flush()

    def _print_spans(self, spans: list[Span]) -> None:
        if spans:
            self._line_is_open = not spans[-1].text.endswith("\n")
            terminal.print_spans(spans)
            sys.stdout.flush()

    def _print_note(self, line: str, style: Style) -> None:
        self._end_text()
        terminal.print_spans([Span(_indented_line(line) + "\n", style)], as_note=not self._is_log)

    def _end_text(self) -> None:
        if self._markdown is not None:
            rest, self._markdown = self._markdown.finish(), None
            self._print_spans(rest)
        if self._line_is_open:
            self._line_is_open = False
            terminal.print_output("\n")
            sys.stdout.flush()


def describe_totals(totals: Totals, seconds: float) -> str:
    """The closing line: turns, tokens, their cached share, cost and time."""
    # Imported late: JSON output does not need it.
    from perdure.cli.render.tables import count, plural

    parts = [plural(totals.turns, "turn")]
    if totals.tokens:
        share = f" ({totals.cached / totals.tokens:.0%} cached)" if totals.cached else ""
        parts.append(f"{count(totals.tokens)} tokens{share}")
    parts.append(f"${totals.cost:.4f}")
    wait = f"{seconds:.1f} s" if seconds < 120 else f"{seconds / 60:.1f} min"
    return " · ".join([*parts, wait])


def _indented_line(line: str) -> str:
    begins = line[: len(line) - len(line.lstrip(" \n"))]
    return begins + one_line(line)


def _format_wait(data: JsonObject) -> str:
    """Say when the next attempt is made, in words that are true when they are printed."""
    if "next" not in data:
        return "trying again"
    seconds = max(0, round((data["next"] - SystemClock().now_millis()) / 1000))
    wait = f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
    return f"trying again in {wait} (attempt {data['attempt'] + 1})"


def _call_key(data: JsonObject) -> tuple[str, str]:
    return data["assistantMessageID"], data["callID"]
