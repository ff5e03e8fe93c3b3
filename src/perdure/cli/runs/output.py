"""What shows the events of a run: text for people, or one line of JSON for each event."""

import sys
from typing import Final, Protocol

from perdure.cli import terminal
from perdure.schema.codec import JsonObject

_HELD_EVENTS_MAX: Final = 1_000


class Output(Protocol):
    """Shows the events of one Session."""

    @property
    def status(self) -> str | None:
        """What the work waits for at the moment; None while that must not be shown."""
        ...

    def remember(self, event: JsonObject) -> None:
        """Take up an event that was shown by an earlier process."""
        ...

    def show(self, event: JsonObject) -> None: ...
    def finish(self) -> None: ...


class JsonOutput:
    """Prints every event of the Session as JSON on its own line."""

    status: None = None

    def remember(self, event: JsonObject) -> None:
        pass

    def show(self, event: JsonObject) -> None:
        terminal.print_output(terminal.as_json(event) + "\n")
        sys.stdout.flush()

    def finish(self) -> None:
        sys.stdout.flush()


class HeldOutput:
    """Shows events, or keeps them while a question stands on the screen."""

    def __init__(self, output: Output) -> None:
        self._output = output
        self._is_held = False
        self._held: list[JsonObject] = []

    @property
    def status(self) -> str | None:
        return None if self._is_held else self._output.status

    def remember(self, event: JsonObject) -> None:
        self._output.remember(event)

    def show(self, event: JsonObject) -> None:
        if not self._is_held:
            self._output.show(event)
            return
        self._held.append(event)
        if len(self._held) > _HELD_EVENTS_MAX:
            self._output.show(self._held.pop(0))

    def finish(self) -> None:
        if not self._is_held:
            self._output.finish()

    def hold(self) -> None:
        """Keep what comes from now on."""
        self._output.finish()
        self._is_held = True

    def release(self) -> None:
        """Show what was kept, and what comes from now on."""
        self._is_held = False
        held, self._held = self._held, []
        for event in held:
            self._output.show(event)
