"""Detects tool calls that repeat without bringing a new result.

A call is identified by its tool and input, and is new when its outcome differs from the previous
one. While no call brings a new outcome, each repetition is counted, also of calls that alternate.
A new outcome resets all counts; new input from a person starts with a new guard. Asking a person
and telling the model is done in runtime.turn.tool_execution.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import State

Verdict = Literal["run", "ask", "stop"]
"""Run the call; ask a person first; or end the run, because refusals do not help either."""

ACTION = "doom_loop"
"""The permission that a call needs once it has repeated too often."""


class _Known(State):
    outcome: bytes
    count: int = 1
    refusals: int = 0


class RepeatedCallGuard:
    """Counts the calls of one run since the last input from a person."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Known] = {}

    def verdict(self, tool: str, input: JsonObject) -> Verdict:
        """What to do with a call that is about to be made."""
        known = self._known.get(_call(tool, input))
        if known is None or known.count < limits.CALLS_REPEATED_MAX:
            return "run"
        return "stop" if known.refusals >= limits.CALLS_REFUSED_MAX else "ask"

    def record_outcome(self, tool: str, input: JsonObject, outcome: object) -> str | None:
        """Record the outcome of a call; a note for the model, if the call repeats."""
        call, digest = _call(tool, input), _digest((codec.encode(outcome),))
        known = self._known.get(call)
        if known is None or known.outcome != digest:
            self._news(call, digest)
            return None
        known.count += 1
        return repetition_note(known.count) if known.count >= limits.CALLS_REPEATED_MAX else None

    def record_refusal(self, tool: str, input: JsonObject) -> None:
        """Record that a person or a rule refused to repeat this call."""
        known = self._known.get(_call(tool, input))
        if known is not None:
            known.refusals += 1

    def _news(self, call: bytes, outcome: bytes) -> None:
        for other in self._known.values():
            other.count, other.refusals = 1, 0
        self._known.pop(call, None)
        self._known[call] = _Known(outcome)
        if len(self._known) > limits.CALLS_REMEMBERED_MAX:
            del self._known[next(iter(self._known))]


def repetition_note(count: int) -> str:
    return (
        f"[This call has now been made {count} times with this very result. Making it again will"
        " not change that. Try something else, or tell the person what is in the way.]"
    )


def refusal_text(reason: str) -> str:
    """The result text of a repeated call that is not made."""
    return f"Not run again, because it keeps bringing the same result. {reason}"


def _call(tool: str, input: JsonObject) -> bytes:
    # The order of the arguments does not matter.
    return _digest((tool.encode(), codec.encode(sorted(input.items(), key=lambda item: item[0]))))


def _digest(parts: Iterable[bytes]) -> bytes:
    hashed = blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(8))
        hashed.update(part)
    return hashed.digest()
