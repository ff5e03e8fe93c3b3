"""Prunes results: a durable marker for each, and a file with its text where there is none yet.

Which results are pruned is decided by core.compaction.pruning. The files are written first, so
that a marker never names one that was not made; a file without a marker is removed by its age.
"""

from collections.abc import Sequence

from msgspec import UNSET

from perdure.core import limits
from perdure.core.compaction.pruning import Prunable
from perdure.core.request import tool_output
from perdure.ports import Transaction
from perdure.runtime.tasks import shielded
from perdure.runtime.turn.boundary import StaleReadError
from perdure.runtime.turn.services import RunServices
from perdure.schema.ids import Seq
from perdure.schema.session.event import RevertCommitted, ToolPruned
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.tool import CompletedState
from perdure.store.log import event_store


class ResultPruning:
    def __init__(self, services: RunServices) -> None:
        self._store = services.store
        self._outputs = services.outputs
        self._clock = services.clock

    async def prune(
        self, session: SessionInfo, chosen: Sequence[Prunable], *, read_at: Seq
    ) -> None:
        """Record the markers. Raises StaleReadError if the Session was reverted since `read_at`."""
        now = self._clock.now_millis()
        facts = [
            ToolPruned(
                timestamp=now,
                session_id=session.id,
                assistant_message_id=found.message_id,
                call_id=found.part.id,
                path=await self._path(found) or UNSET,
            )
            for found in chosen
        ]
        for start in range(0, len(facts), limits.APPEND_EVENTS_MAX):
            batch = facts[start : start + limits.APPEND_EVENTS_MAX]
            await shielded(self._append(session, batch, read_at))

    async def _append(
        self, session: SessionInfo, facts: Sequence[ToolPruned], read_at: Seq
    ) -> None:
        async def within(tx: Transaction, seq: Seq) -> None:
            if await event_store.has_event_since(tx, session.id, read_at, RevertCommitted):
                raise StaleReadError(session.id)

        await self._store.append(
            session.id, facts, location=session.location, running=True, within=within
        )

    async def _path(self, found: Prunable) -> str | None:
        """The file with the text of a result; None if it has none or cannot be stored."""
        state = found.part.state
        if not isinstance(state, CompletedState):
            return None
        if state.output_paths and await self._outputs.holds(state.output_paths[-1]):
            return state.output_paths[-1]
        text = tool_output.measured_text(state.structured, state.content)
        return await self._outputs.keep(text) if text else None
