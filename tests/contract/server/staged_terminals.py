"""One terminal that repeats what is typed, behind the protocol the server asks for."""

import asyncio
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from functools import partial

from perdure.schema.errors import PtyNotFoundError
from perdure.schema.files.pty import PtyInfo, PtySize, PtyStart, PtyTicket
from perdure.schema.ids import PtyID
from perdure.schema.location import LocationRef

PTY = PtyID("pty_one")


@dataclass(slots=True)
class StagedReader:
    cursor: int = 0
    lagged: bool = False
    typed: asyncio.Queue[str] = field(default_factory=asyncio.Queue[str])

    def kept(self) -> str:
        return ""

    async def next(self) -> str | None:
        return await self.typed.get()

    async def write(self, data: bytes) -> None:
        self.typed.put_nowait(data.decode())


class StagedTerminals:
    async def list(self, ref: LocationRef) -> tuple[PtyInfo, ...]:
        return (await self.get(ref, PTY),)

    async def directory(self, ref: LocationRef, cwd: str | None) -> str:
        return cwd or ref.directory

    async def create(self, ref: LocationRef, start: PtyStart) -> PtyInfo:
        return await self.get(ref, PTY)

    async def get(self, ref: LocationRef, id: PtyID) -> PtyInfo:
        if id != PTY:
            raise PtyNotFoundError(id)
        return PtyInfo(
            id=PTY,
            title="t",
            command="/bin/sh",
            args=(),
            cwd=ref.directory,
            status="running",
            pid=1,
        )

    async def update(
        self, ref: LocationRef, id: PtyID, *, title: str | None, size: PtySize | None
    ) -> PtyInfo:
        return await self.get(ref, id)

    async def remove(self, ref: LocationRef, id: PtyID) -> None:
        await self.get(ref, id)

    async def ticket(self, ref: LocationRef, id: PtyID) -> PtyTicket:
        await self.get(ref, id)
        return PtyTicket(ticket="good", expires_in=60)

    async def redeem(self, ref: LocationRef, id: PtyID, ticket: str) -> bool:
        return ticket == "good"

    async def reader(
        self, ref: LocationRef, id: PtyID, cursor: int | None
    ) -> Callable[[], AbstractContextManager[StagedReader]]:
        await self.get(ref, id)
        return partial(_attached, cursor or 0)


@contextmanager
def _attached(cursor: int) -> Generator[StagedReader]:
    yield StagedReader(cursor)
