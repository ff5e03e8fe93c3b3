"""Replay the log after a sequence, then follow it: one coalesced dirty signal for each reader.

The signal exists before the first read and is cleared before each read, so no commit is missed and
any number of commits cost one query. While a Session has readers, the frames that this process
committed last are kept in memory: an up-to-date reader needs no query.
"""

import asyncio
from collections import defaultdict, deque
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import contextmanager
from itertools import islice

from perdure.core import limits
from perdure.net import sse
from perdure.schema import codec
from perdure.schema.ids import Seq, SessionID
from perdure.schema.live_event import LIVE_TYPES, SessionReplayed
from perdure.schema.location import LocationRef
from perdure.schema.session.event import Deleted
from perdure.store.log.event_store import NO_EVENTS, EventStore, StoredEvent


class EventFollowers:
    """The open event streams of this process."""

    def __init__(self, store: EventStore) -> None:
        self._store = store
        self._signals: defaultdict[SessionID, set[asyncio.Event]] = defaultdict(set)
        self._recent: dict[SessionID, _Recent] = {}
        store.listen(self._committed)

    def wake(self, session_id: SessionID) -> None:
        for signal in self._signals.get(session_id, ()):
            signal.set()

    def wake_all(self) -> None:
        """Make every reader read the log again, because another process committed something."""
        for recent in self._recent.values():
            recent.forget()
        for signals in self._signals.values():
            for signal in signals:
                signal.set()

    def _committed(
        self,
        session_id: SessionID,
        events: tuple[StoredEvent, ...],
        location: LocationRef | None,
    ) -> None:
        if (recent := self._recent.get(session_id)) is not None:
            recent.add(events)
        self.wake(session_id)

    async def follow(
        self, session_id: SessionID, *, after: Seq, marks_replay: bool = False
    ) -> AsyncGenerator[bytes]:
        """Yield complete SSE frames, a page at a time, until the Session is deleted.

        The replay is separated from later events by the comment `sse.REPLAYED`, or, with
        `marks_replay`, by the event `session.replayed`, which is not in the log. Raises
        DamagedRowError at the first event that cannot be read, after all events before it.
        """
        seen, replaying = after, True
        with self._signal(session_id) as signal:
            while True:
                signal.clear()
                before = seen
                if (kept := self._recent[session_id].after(seen)) is not None:
                    seen, frames = kept
                    if frames:
                        yield frames
                else:
                    async for last, frames in self._pages(session_id, after=seen):
                        seen = last
                        if frames:
                            yield frames
                if seen == before and await self._store.latest(session_id) == NO_EVENTS:
                    # The Session was deleted, and its log with it.
                    return
                if replaying:
                    replaying = False
                    yield self._replayed(session_id, seen) if marks_replay else sse.REPLAYED
                await signal.wait()

    def _replayed(self, session_id: SessionID, seen: Seq) -> bytes:
        mark = SessionReplayed(session_id=session_id, seq=seen)
        name, event_id = LIVE_TYPES[SessionReplayed], self._store.new_event_id()
        data = codec.encode({"id": event_id, "type": name, "data": mark})
        # Named, so that a browser's EventSource gives it only to those who ask for it.
        return sse.write(data, event=name.encode())

    async def _pages(
        self, session_id: SessionID, *, after: Seq
    ) -> AsyncIterator[tuple[Seq, bytes]]:
        while True:
            page = await self._store.read_page(
                session_id, after=after, limit=limits.REPLAY_ROWS_PER_READ
            )
            if not page.rows:
                return
            after = page.rows[-1][0]
            # Sequence 0 created the Session; the public stream starts after it.
            yield after, b"".join(sse.write(wire, id=seq) for seq, wire in page.rows if seq > 0)
            if page.damaged is not None:
                raise page.damaged
            if not page.has_more:
                return
            # A long replay yields to other tasks.
            await asyncio.sleep(0)

    @contextmanager
    def _signal(self, session_id: SessionID) -> Generator[asyncio.Event]:
        signal = asyncio.Event()
        self._signals[session_id].add(signal)
        self._recent.setdefault(session_id, _Recent())
        try:
            yield signal
        finally:
            self._signals[session_id].discard(signal)
            if not self._signals[session_id]:
                del self._signals[session_id], self._recent[session_id]


class _Recent:
    """SSE frames of the newest events that this process committed, without a gap."""

    def __init__(self) -> None:
        self._frames: deque[bytes] = deque()
        self._first = 0
        self._bytes = 0

    def add(self, events: tuple[StoredEvent, ...]) -> None:
        for item in events:
            end = self._first + len(self._frames)
            if item.seq != end:
                # Another process wrote in between: readers must query the log.
                self.forget(next=max(item.seq, end))
            if isinstance(item.event, Deleted):
                self.forget(next=item.seq + 1)
            elif item.seq >= end:
                # Sequence 0 created the Session; the public stream starts after it.
                frame = sse.write(item.wire, id=item.seq) if item.seq else b""
                self._frames.append(frame)
                self._bytes += len(frame)
        while self._bytes > limits.TAIL_BYTES_KEPT_MAX:
            self._bytes -= len(self._frames.popleft())
            self._first += 1

    def after(self, seq: Seq) -> tuple[Seq, bytes] | None:
        """The last sequence and all frames after `seq`; None if some are not kept."""
        skipped = seq + 1 - self._first
        if not 0 <= skipped < len(self._frames):
            return None
        last = Seq(self._first + len(self._frames) - 1)
        return last, b"".join(islice(self._frames, skipped, None))

    def forget(self, *, next: int = 0) -> None:
        self._frames.clear()
        self._bytes = 0
        self._first = next
