"""What `perdure run` shows of a Session, event by event: text for people, or lines of JSON.

The assistant's text goes to stdout and everything about it to stderr, so that the answer alone
can be piped on. Nothing that a model or a tool made is shown without being cleaned.
"""

import sys
from typing import Protocol, cast

from perdure.cli import terminal
from perdure.cli.terminal import Cleaner, one_line
from perdure.schema.codec import JsonObject, JsonValue


class Output(Protocol):
    def show(self, event: JsonObject) -> None: ...
    def finish(self) -> None: ...


class JsonOutput:
    """Every event of the Session on a line of its own."""

    def show(self, event: JsonObject) -> None:
        terminal.say(terminal.as_json(event) + "\n")
        sys.stdout.flush()

    def finish(self) -> None:
        sys.stdout.flush()


class TextOutput:
    """Text as it is spoken, a line for each tool call and its end."""

    def __init__(self) -> None:
        self._cleaner = Cleaner()
        self._spoken = False
        """Whether fragments of the current text were shown."""
        self._open_line = False
        self._tools: dict[tuple[str, str], str] = {}

    def show(self, event: JsonObject) -> None:
        data = cast("JsonObject", event["data"])
        match event["type"]:
            case "session.next.text.started":
                self._cleaner, self._spoken = Cleaner(), False
            case "session.next.text.delta":
                self._spoken = True
                self._say(data["delta"])
            case "session.next.text.ended":
                if not self._spoken:
                    self._say(data["text"])
                self._end_line()
            case "session.next.tool.called":
                self._tools[_call(data)] = data["tool"]
                self._note(f"> {data['tool']} {_shown_input(data['input'])}")
            case "session.next.tool.success":
                self._note(f"  {self._tools.pop(_call(data), 'tool')} done")
            case "session.next.tool.failed":
                name = self._tools.pop(_call(data), "tool")
                self._note(f"  {name} failed: {data['error']['message']}")
            case "session.next.retried":
                self._note(f"  trying again: {data['error']['message']}")
            case "session.next.step.failed":
                self._note(f"failed: {data['error']['message']}")
            case _:
                pass

    def finish(self) -> None:
        self._end_line()

    def _say(self, text: str) -> None:
        shown = self._cleaner.feed(text)
        if shown:
            self._open_line = not shown.endswith("\n")
            terminal.say(shown)
            sys.stdout.flush()

    def _note(self, line: str) -> None:
        self._end_line()
        terminal.note(_indented_line(line) + "\n")
        sys.stderr.flush()

    def _end_line(self) -> None:
        if self._open_line:
            self._open_line = False
            terminal.say("\n")
            sys.stdout.flush()


def _indented_line(line: str) -> str:
    indent = line[: len(line) - len(line.lstrip(" "))]
    return indent + one_line(line)


def _call(data: JsonObject) -> tuple[str, str]:
    return data["assistantMessageID"], data["callID"]


def _shown_input(value: JsonValue) -> str:
    import json

    return json.dumps(value, ensure_ascii=False)
