"""A step whose process died or stopped: its open calls are run here, or settled as unknown.

Its answer is in the log and is not asked for again. When the last call is settled, the step ends
and the model is sent the results, as after every step with calls.
"""

from collections.abc import Sequence

from perdure.runtime.turn.ownership import build_rejection
from perdure.runtime.turn.provider_turn import ProviderTurn
from perdure.runtime.turn.tool_execution import ToolExecutor
from perdure.runtime.turn.turn_end import TurnEnd
from perdure.schema.session.event import SessionEvent, ToolCalled
from perdure.schema.value import Value
from perdure.store.tables import pending_table


class LostCall(Value):
    """A call that must not be run again, and what the model is told about it."""

    call: ToolCalled
    message: str


class CutStep(ProviderTurn):
    async def resume(
        self,
        again: Sequence[ToolCalled],
        lost: Sequence[LostCall],
        ends: Sequence[SessionEvent],
        *,
        asked: bool,
    ) -> TurnEnd:
        """Run the calls `again`, settle those that are `lost`, and end the parts and the step.

        `asked`: a person's answer is used here, so that the end of the step is progress.
        Raises CancelledError when interrupted, after the step has been settled.
        """
        self._streamed, self._log.is_cut = True, not asked
        async with self._settling() as group:
            # Recorded with the end of the step, unless calls run before that.
            self._log.add(*ends, *(self._settle_lost(one) for one in lost))
            if again:
                await self._log.commit()
            for call in again:
                name = f"tool {call.tool}"
                group.create_task(self._run_call(self._tools, call), name=name)
        return await self._end(None)

    @property
    def _tools(self) -> ToolExecutor:
        assert self._executor is not None, "a step that is gone on with has tools"
        return self._executor

    async def _settle_step(self, unsettled: str, reason: str, *, fails: bool = False) -> None:
        """As for every step; what a person has yet to answer is void then, and that is told."""
        rows = await self._store.database.read(
            lambda tx: pending_table.list_of_step(tx, self._session.id, self._recorder.message_id)
        )
        await super()._settle_step(unsettled, reason, fails=fails)
        for row in rows:
            if row.answer is None:
                self._hub.publish(build_rejection(row.request), self._location)

    def _settle_lost(self, lost: LostCall) -> SessionEvent:
        now = self._clock.now_millis()
        return self._recorder.failed(
            lost.call.call_id, now=now, message=lost.message, reported=False
        )
