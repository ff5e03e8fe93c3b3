"""Makes unique identifiers without coordination between processes.

Ids are names, not secrets: the entropy starts at random and advances by a random odd stride, which
is cheap; two processes collide with a probability of about 2^-83.

Invariant: within one source ticks never repeat and never decrease, even if the clock goes back.
"""

import secrets

from perdure.ports import Clock
from perdure.schema import ids
from perdure.schema.ids import EventID, MessageID, PermissionID, SessionID


class ComposedIds:
    """Implements ports.IdSource from a clock and a sequence of entropy values."""

    def __init__(self, clock: Clock, *, entropy: int, stride: int) -> None:
        self._clock = clock
        self._entropy = entropy
        self._stride = stride
        self._tick = 0

    def session(self) -> SessionID:
        return SessionID(self._compose("ses", descending=True))

    def message(self) -> MessageID:
        return MessageID(self._compose("msg"))

    def event(self) -> EventID:
        return EventID(self._compose("evt"))

    def permission(self) -> PermissionID:
        return PermissionID(self._compose("per"))

    def named(self, prefix: str) -> str:
        return self._compose(prefix)

    def _compose(self, prefix: str, *, descending: bool = False) -> str:
        tick = max(self._clock.now_millis() * ids.TICKS_PER_MILLI, self._tick + 1)
        self._tick = tick
        self._entropy = (self._entropy + self._stride) % ids.ENTROPY_SPAN
        return ids.compose(prefix, tick=tick, entropy=self._entropy, descending=descending)


class SystemIds(ComposedIds):
    """Ids that are unique across processes."""

    def __init__(self, clock: Clock) -> None:
        entropy = secrets.randbelow(ids.ENTROPY_SPAN)
        stride = secrets.randbelow(ids.ENTROPY_SPAN) | 1
        super().__init__(clock, entropy=entropy, stride=stride)
