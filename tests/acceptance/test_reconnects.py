"""A thousand readers whose connections are cut again and again see each event exactly once."""

import asyncio
import random
from contextlib import suppress
from dataclasses import dataclass, field

from perdure.schema import session_event as events
from perdure.schema.ids import MessageID, SessionID
from tests.requirements import requirement
from tests.support.instance import Instance

READERS = 1_000
EVENTS = 24
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

    async def read_all(self) -> None:
        for _ in range(self.chance.randint(1, CUTS_MAX)):
            await self._read(until=self.chance.randint(1, EVENTS), cut=True)
        await self._read(until=EVENTS, cut=False)

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
async def test_a_thousand_readers_with_random_cuts_see_every_event_exactly_once(
    instance: Instance,
) -> None:
    session = await instance.api.create()
    connecting = asyncio.Semaphore(CONNECTING_MAX)
    readers = [
        Reader(instance.api.port, session, random.Random(seed), connecting)
        for seed in range(READERS)
    ]

    async def write() -> None:
        for number in range(1, EVENTS + 1):
            fact = events.SyntheticAdded(
                timestamp=number,
                session_id=SessionID(session),
                message_id=MessageID(f"msg_{number}"),
                text="x",
            )
            await instance.runtime.store.append(SessionID(session), [fact], location=None)

    async with asyncio.timeout(SECONDS_MAX), asyncio.TaskGroup() as group:
        group.create_task(write())
        for reader in readers:
            group.create_task(reader.read_all())
    wanted = list(range(1, EVENTS + 1))
    assert [reader for reader in readers if reader.seen != wanted] == []
