"""Replay after a sequence, then follow: one coalesced dirty signal for each reader.

The signal is set before the first read and cleared before each one, so a commit in between is
never missed, and any number of commits cost one query. The log is the truth; a wake is an edge.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager

from perdure.core import limits
from perdure.schema import sse
from perdure.schema.ids import Seq, SessionID
from perdure.store.event_store import NO_EVENTS, EventStore


class EventTails:
    """Every open tail of this process."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._signals: defaultdict[SessionID, set[asyncio.Event]] = defaultdict(set)
        store.listen(lambda session_id, events, location: self.wake(session_id))

    def wake(self, session_id: SessionID) -> None:
        for signal in self._signals.get(session_id, ()):
            signal.set()

    def wake_all(self) -> None:
        """Something was committed by another process: every tail looks again."""
        for signals in self._signals.values():
            for signal in signals:
                signal.set()

    @property
    def count(self) -> int:
        return sum(len(signals) for signals in self._signals.values())

    async def follow(self, session_id: SessionID, *, after: Seq) -> AsyncGenerator[bytes]:
        """Complete SSE frames, a page at a time; ends only with the Session.

        A comment stands between what had happened when it was asked for and what comes then.
        Raises DamagedRowError where the log cannot be read, after all that stands before.
        """
        seen, replaying = after, True
        with self._signal(session_id) as signal:
            while True:
                signal.clear()
                before = seen
                async for last, frames in self._pages(session_id, after=seen):
                    seen = last
                    if frames:
                        yield frames
                if seen == before and await self._store.latest(session_id) == NO_EVENTS:
                    # The Session was deleted, and its log with it.
                    return
                if replaying:
                    replaying = False
                    yield sse.REPLAYED
                await signal.wait()

    async def _pages(
        self, session_id: SessionID, *, after: Seq
    ) -> AsyncIterator[tuple[Seq, bytes]]:
        while True:
            rows, damaged = await self._store.read_readable(
                session_id, after=after, limit=limits.REPLAY_ROWS_PER_READ
            )
            if not rows:
                return
            after = rows[-1][0]
            # Sequence 0 made the Session; readers of the public stream start after it.
            yield after, b"".join(sse.write(wire, id=seq) for seq, wire in rows if seq > 0)
            if damaged is not None:
                raise damaged
            if len(rows) < limits.REPLAY_ROWS_PER_READ:
                return
            # A long replay takes turns with everyone else.
            await asyncio.sleep(0)

    @contextmanager
    def _signal(self, session_id: SessionID) -> Generator[asyncio.Event]:
        signal = asyncio.Event()
        self._signals[session_id].add(signal)
        try:
            yield signal
        finally:
            self._signals[session_id].discard(signal)
            if not self._signals[session_id]:
                del self._signals[session_id]
