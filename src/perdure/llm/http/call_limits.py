"""The limits of one call, and how much of them its answer has used.

The idle timeout counts what an answer says: an event with content. Comments, empty deltas and the
bytes of a frame that never ends are no progress, however often they come. The total counts from the
request, whatever is said.
"""

import asyncio
from collections.abc import Sequence
from typing import Final

from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent, ReasoningDelta, TextDelta, ToolInputDelta
from perdure.schema.value import Value


class CallLimits(Value, kw_only=True):
    """Timeouts and sizes of a call. A size of 0 means no limit."""

    frame_bytes_max: int = 16 * 1024 * 1024
    answer_bytes_max: int = 0
    """Of the whole body, after decompression."""
    quiet_bytes_max: int = 0
    """Of the body between two events that say something."""
    refusal_seconds_max: float = 5.0
    """To read the body of an error response; the part received by then is used."""
    connect_seconds_max: float | None = None
    """To connect; None leaves it to the transport, 0 means no timeout."""
    first_byte_seconds_max: float = 0
    """From the request to the first byte of the answer; 0 means no timeout."""
    idle_seconds_max: float = 0
    """The longest time in which an answer says nothing; 0 means no timeout."""
    total_seconds_max: float = 0
    """From the request to the end of the answer; 0 means no timeout."""

    @property
    def first_wait(self) -> tuple[float, str]:
        """How long the answer may take to begin, and the name of the limit that says so."""
        first, total = self.first_byte_seconds_max, self.total_seconds_max
        return (total, "total") if total and not 0 < first <= total else (first, "first_byte")


class AnswerUse:
    """What an answer has used of the limits of its call."""

    def __init__(self, limits: CallLimits, began: float) -> None:
        """`began`: when the request was sent, in the time of the loop."""
        self._limits = limits
        self._began = began
        self._loop = asyncio.get_running_loop()
        self._bytes = self._quiet_bytes = 0
        self._heard_at = self._loop.time()

    @property
    def deadline(self) -> float | None:
        """When the answer must have gone on or ended, in the time of the loop; None for never."""
        idle, total = self._limits.idle_seconds_max, self._limits.total_seconds_max
        until = [self._heard_at + idle] if idle else []
        return min([*until, self._began + total] if total else until, default=None)

    def overdue(self) -> LLMError:
        """The error of an answer that is not there by its deadline."""
        total = self._limits.total_seconds_max
        if total and self._loop.time() >= self._began + total:
            message = f"The provider answered for {total:g} s, the limit `total` of its timeouts"
            return LLMError("timeout", message)
        return silence(self._limits.idle_seconds_max, "idle")

    def count(self, size: int) -> None:
        """Count bytes of the body. Raises LLMError when they are too many."""
        self._bytes += size
        self._quiet_bytes += size
        most, quiet_most = self._limits.answer_bytes_max, self._limits.quiet_bytes_max
        if most and self._bytes > most:
            raise _stopped(f"it is larger than {_mebibytes(most)}, the most that one may be")
        if quiet_most and self._quiet_bytes > quiet_most:
            raise _stopped(f"it said nothing in {_mebibytes(quiet_most)}")

    def hear(self, batch: Sequence[LLMEvent]) -> None:
        """Note that the answer went on, if these events say something."""
        if any(not isinstance(event, _DELTAS) or event.text for event in batch):
            self._quiet_bytes = 0
            self._heard_at = self._loop.time()


def silence(seconds: float, limit: str) -> LLMError:
    """The error of a provider that said nothing for longer than a limit of its timeouts."""
    message = f"The provider was silent for {seconds:g} s, the limit `{limit}` of its timeouts"
    return LLMError("timeout", message)


_DELTAS: Final = (TextDelta, ReasoningDelta, ToolInputDelta)


def _stopped(why: str) -> LLMError:
    return LLMError("invalid-provider-output", f"The provider's answer was stopped: {why}")


def _mebibytes(size: int) -> str:
    return f"{size / 2**20:,.4g} MiB"
