"""A thousand readers whose connections are cut again and again see each event exactly once.

`PERDURE_STORM_SECONDS` asks for rounds of it until so many seconds have passed.
"""

import asyncio
import os
import random
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic

import pytest

from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session import event as events
from tests.figures import Figure
from tests.requirements import requirement
from tests.support.instance import Instance

STORM_SECONDS = float(os.environ.get("PERDURE_STORM_SECONDS", "0"))
READERS = 1_000
EVENTS = 12
"""In each round."""
CUTS_MAX = 2
SECONDS_MAX = 60
CONNECTING_MAX = 200
"""At a time: a listening socket has a queue of limited length."""


@dataclass(slots=True)
class Reader:
    """Resumes after the last sequence that it saw, as `Last-Event-ID` says."""

    port: int
    session: str
    chance: random.Random
    connecting: asyncio.Semaphore
    seen: list[int] = field(default_factory=list[int])
    cuts: int = 0

    async def read_round(self, before: int) -> None:
        for _ in range(self.chance.randint(1, CUTS_MAX)):
            await self._read(until=before + self.chance.randint(1, EVENTS), cut=True)
            self.cuts += 1
        await self._read(until=before + EVENTS, cut=False)

    async def _read(self, *, until: int, cut: bool) -> None:
        async with self.connecting:
            reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
            last = self.seen[-1] if self.seen else 0
            head = f"GET /api/session/{self.session}/event HTTP/1.1\r\nhost: localhost\r\n"
            writer.write(f"{head}last-event-id: {last}\r\n\r\n".encode())
            await reader.readuntil(b"\r\n\r\n")
        try:
            while not self.seen or self.seen[-1] < until:
                line = await reader.readuntil(b"\n")
                if line.startswith(b"id: "):
                    number = int(line[4:])
                    # Counted once its data has come, as a client that was cut off would.
                    await reader.readuntil(b"\n\n")
                    self.seen.append(number)
        finally:
            if cut:
                writer.transport.abort()
            else:
                writer.close()
                with suppress(ConnectionError):
                    await writer.wait_closed()


@requirement("S129", "S134")
@pytest.mark.timeout(STORM_SECONDS + 2 * SECONDS_MAX)
async def test_a_thousand_readers_with_random_cuts_see_every_event_exactly_once(
    instance: Instance, figure: Figure
) -> None:
    session = await instance.api.create()
    connecting = asyncio.Semaphore(CONNECTING_MAX)
    readers = [
        Reader(instance.api.port, session, random.Random(seed), connecting)
        for seed in range(READERS)
    ]

    written, started = 0, monotonic()
    while not written or monotonic() - started < STORM_SECONDS:
        async with asyncio.timeout(SECONDS_MAX), asyncio.TaskGroup() as group:
            group.create_task(write(instance, session, written))
            for reader in readers:
                group.create_task(reader.read_round(written))
        written += EVENTS
    wanted = list(range(1, written + 1))
    assert [reader for reader in readers if reader.seen != wanted] == []
    figure("readers of one session", len(readers))
    figure("cuts of readers", sum(reader.cuts for reader in readers))
    figure("seconds of cuts", round(monotonic() - started))


async def write(instance: Instance, session: str, before: int) -> None:
    for number in range(before + 1, before + EVENTS + 1):
        fact = events.SyntheticAdded(
            timestamp=number,
            session_id=SessionID(session),
            message_id=MessageID(f"msg_{number}"),
            text="x",
        )
        await instance.runtime.store.append(SessionID(session), [fact], location=None)
