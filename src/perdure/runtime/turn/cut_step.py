"""A step whose process died or stopped: its open calls are run here, or settled as unknown.

Its answer is in the log and is not asked for again. When the last call is settled, the step ends
and the model is sent the results, as after every step with calls.
"""

from collections.abc import Sequence

from perdure.runtime.turn.ownership import build_rejection
from perdure.runtime.turn.provider_turn import ProviderTurn
from perdure.runtime.turn.turn_end import TurnEnd
from perdure.schema.session.event import SessionEvent, ToolCalled
from perdure.schema.value import Value
from perdure.store.tables import pending_table


class LostCall(Value):
    """A call that must not be run again, and what the model is told about it."""

    call: ToolCalled
    message: str


class CutStep(ProviderTurn):
    async def resume(self, again: Sequence[ToolCalled], lost: Sequence[LostCall]) -> TurnEnd:
        """Run the calls `again`, settle those that are `lost`, and end the step.

        Raises CancelledError when interrupted, after the step has been settled.
        """
        self._streamed = True
        async with self._settling() as group:
            settled: list[SessionEvent] = [self._settle_lost(one) for one in lost]
            if again and settled:
                await self._append(settled)
            else:
                # Recorded with the end of the step.
                self._pending += settled
            for call in again:
                self._begin_call(group, call)
        return await self._end(None)

    async def _settle_step(self, unsettled: str, reason: str) -> None:
        """As for every step; what a person has yet to answer is void then, and that is told."""
        rows = await self._store.database.read(
            lambda tx: pending_table.list_of_step(tx, self._session.id, self._recorder.message_id)
        )
        await super()._settle_step(unsettled, reason)
        for row in rows:
            if row.answer is None:
                self._hub.publish(build_rejection(row.request), self._location)

    def _settle_lost(self, lost: LostCall) -> SessionEvent:
        now = self._clock.now_millis()
        return self._recorder.failed(
            lost.call.call_id, now=now, message=lost.message, reported=False
        )
