"""Output of `perdure run`: text for people, or one line of JSON for each event.

The assistant's text goes to stdout, everything else to stderr, so that a pipe gets the answer
alone. Text from a model or a tool is cleaned of control sequences before it is shown.
"""

import sys
from typing import Protocol, cast

from perdure.cli import terminal
from perdure.cli.terminal import Cleaner, one_line
from perdure.host.clock import SystemClock
from perdure.schema.codec import JsonObject, JsonValue


class Output(Protocol):
    """Shows the events of one Session."""

    def show(self, event: JsonObject) -> None: ...
    def finish(self) -> None: ...


class JsonOutput:
    """Prints every event of the Session as JSON on its own line."""

    def show(self, event: JsonObject) -> None:
        terminal.print_output(terminal.as_json(event) + "\n")
        sys.stdout.flush()

    def finish(self) -> None:
        sys.stdout.flush()


class TextOutput:
    """Prints text as it arrives, and a line for each tool call and for its result."""

    def __init__(self) -> None:
        self._cleaner = Cleaner()
        self._has_deltas = False
        """Whether deltas of the current text were shown."""
        self._line_is_open = False
        self._tools: dict[tuple[str, str], str] = {}

    def show(self, event: JsonObject) -> None:
        data = cast("JsonObject", event["data"])
        match event["type"]:
            case "session.next.text.started":
                self._cleaner, self._has_deltas = Cleaner(), False
            case "session.next.text.delta":
                self._has_deltas = True
                self._print_text(data["delta"])
            case "session.next.text.ended":
                if not self._has_deltas:
                    self._print_text(data["text"])
                self._end_line()
            case "session.next.tool.called":
                self._tools[_call_key(data)] = data["tool"]
                self._print_note(f"> {data['tool']} {_format_input(data['input'])}")
            case "session.next.tool.success":
                self._print_note(f"  {self._tools.pop(_call_key(data), 'tool')} done")
            case "session.next.tool.failed":
                name = self._tools.pop(_call_key(data), "tool")
                self._print_note(f"  {name} failed: {data['error']['message']}")
            case "session.next.retried":
                self._print_note(f"  {_format_wait(data)}: {data['error']['message']}")
            case _:
                pass

    def finish(self) -> None:
        self._end_line()

    def _print_text(self, text: str) -> None:
        shown = self._cleaner.feed(text)
        if shown:
            self._line_is_open = not shown.endswith("\n")
            terminal.print_output(shown)
            sys.stdout.flush()

    def _print_note(self, line: str) -> None:
        self._end_line()
        terminal.print_note(_indented_line(line) + "\n")
        sys.stderr.flush()

    def _end_line(self) -> None:
        if self._line_is_open:
            self._line_is_open = False
            terminal.print_output("\n")
            sys.stdout.flush()


def _indented_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip(" "))]
    return indent + one_line(line)


def _format_wait(data: JsonObject) -> str:
    """Say when the next attempt is made, in words that are true when they are printed."""
    if "next" not in data:
        return "trying again"
    seconds = max(0, round((data["next"] - SystemClock().now_millis()) / 1000))
    wait = f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"
    return f"trying again in {wait} (attempt {data['attempt'] + 1})"


def _call_key(data: JsonObject) -> tuple[str, str]:
    return data["assistantMessageID"], data["callID"]


def _format_input(value: JsonValue) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
