"""The engine, once it has been needed: loading it costs more than everything before it."""

from importlib import import_module
from typing import TYPE_CHECKING, cast

from perdure.runtime import pending_requests
from perdure.runtime.parts import Parts
from perdure.schema.ids import SessionID

if TYPE_CHECKING:
    from perdure.runtime.engine import Engine


class EngineRoom:
    """Holds the engine once it has been needed."""

    parts: Parts

    def __init__(self) -> None:
        self._engine: Engine | None = None

    def get(self) -> "Engine":
        if self._engine is None:
            module = import_module("perdure.runtime.engine")
            self._engine = cast("Engine", module.Engine(self.parts))
        return self._engine

    async def drain(self, session_id: SessionID, force: bool) -> None:
        await self.get().runner.drain(session_id, force)

    async def unfinished(self) -> list[SessionID]:
        """Sessions that a dead process left in the middle of something."""
        if not await self.parts.store.leases.left_behind():
            return []
        return await self.get().tenures.unfinished()

    async def deliver(self) -> None:
        """Only who has run something can have asked somebody."""
        if self._engine is not None:
            await self._engine.deliver()

    async def reject_orphans(self) -> None:
        """What dead processes waited for, for all to see."""
        await pending_requests.reject_orphans(self.parts.pending, self.parts.hub)

    async def aclose(self) -> None:
        if self._engine is not None:
            await self._engine.aclose()
