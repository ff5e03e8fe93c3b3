"""Whether a run still gets anywhere: calls that were made before and brought the same result.

A call is known by its tool and input, and brings news when its outcome is not the one it had
before. As long as nothing brings news, each known call is counted, also when several take turns.
Any news starts every count anew, and so does new input from a person: then there is a new object.
Asking a person and telling the model is done in runtime.turn.tool_execution.
"""

from collections.abc import Iterable
from hashlib import blake2b
from typing import Literal

from perdure.core import limits
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import State

Verdict = Literal["run", "ask", "stop"]
"""Run the call; ask a person first; or end the run, because even refusals change nothing."""

ACTION = "doom_loop"
"""The permission that a call needs which has brought nothing new for too long."""


class _Known(State):
    outcome: bytes
    count: int = 1
    refusals: int = 0


class RepeatedCallGuard:
    """The calls of one run, since a person last said something."""

    def __init__(self) -> None:
        self._known: dict[bytes, _Known] = {}

    def verdict(self, tool: str, input: JsonObject) -> Verdict:
        """What to do with a call that is about to be made."""
        known = self._known.get(_call(tool, input))
        if known is None or known.count < limits.CALLS_REPEATED_MAX:
            return "run"
        return "stop" if known.refusals >= limits.CALLS_REFUSED_MAX else "ask"

    def settled(self, tool: str, input: JsonObject, outcome: object) -> str | None:
        """Take in how a call went; what the model should be told, if it repeats itself."""
        call, brought = _call(tool, input), _digest((codec.encode(outcome),))
        known = self._known.get(call)
        if known is None or known.outcome != brought:
            self._news(call, brought)
            return None
        known.count += 1
        return repetition_note(known.count) if known.count >= limits.CALLS_REPEATED_MAX else None

    def refused(self, tool: str, input: JsonObject) -> None:
        """A person or a rule did not let this call be made once more."""
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
    """What the model is told when such a call is not made."""
    return f"Not run again, because it keeps bringing the same result. {reason}"


def _call(tool: str, input: JsonObject) -> bytes:
    # The order of the arguments means nothing.
    return _digest((tool.encode(), codec.encode(sorted(input.items(), key=lambda item: item[0]))))


def _digest(parts: Iterable[bytes]) -> bytes:
    hashed = blake2b(digest_size=16)
    for part in parts:
        hashed.update(len(part).to_bytes(8))
        hashed.update(part)
    return hashed.digest()
