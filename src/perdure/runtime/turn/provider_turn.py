"""One Provider Turn: send a request, record its streamed answer, run its tool calls.

Facts are committed before anything that follows from them becomes visible: a text fragment waits
for the start of its part, a tool for the record of its call, the end of the step for every tool
result. Facts that nothing waits for share a commit. However the turn ends, its step is settled.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from perdure.core import limits
from perdure.core.session import turn_recorder
from perdure.core.session.recovery import INTERRUPTED
from perdure.core.session.turn_recorder import Fragment, TurnRecorder
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent, Usage
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest
from perdure.net.streams import close_stream
from perdure.ports import DatabaseError
from perdure.runtime.files.step_journal import StepJournal, UnjournaledStep
from perdure.runtime.tasks import Background, shielded
from perdure.runtime.turn import tool_execution
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.retries import DroppedAnswers
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.step_settlement import StepSettlement
from perdure.runtime.turn.tool_execution import Succeeded, ToolExecutor, ToolRun
from perdure.runtime.turn.tool_progress import ToolProgress
from perdure.runtime.turn.turn_end import (
    TURN_BROKEN,
    TURN_DECLINED,
    TURN_INTERRUPTED,
    TURN_OUT_OF_MEMORY,
    TurnEnd,
)
from perdure.schema.ids import ToolCallID
from perdure.schema.live_event import TodosChanged
from perdure.schema.location import LocationRef
from perdure.schema.session.event import (
    SessionEvent,
    TodosUpdated,
    ToolCalled,
    ToolProgressed,
)
from perdure.schema.session.session import SessionInfo
from perdure.store.processes.lease_table import LeaseHeldError
from perdure.tools.api.registry import ToolError
from perdure.tools.api.tool import Progress

_TOO_MANY_CALLS = f"Too many calls in one turn; at most {limits.TOOL_CALLS_PER_TURN_MAX} are run."
_FLUSH_SECONDS: Final = 0.02


class _DeclinedError(Exception):
    """Ends the whole turn from inside one of its tool calls."""


class ProviderTurn(StepSettlement):
    def __init__(
        self,
        services: RunServices,
        marks: RequestMarks,
        session: SessionInfo,
        *,
        step: int,
        recorder: TurnRecorder,
        tools: ToolRun | None,
        cost: Callable[[Usage], float],
        journal: StepJournal | UnjournaledStep,
    ) -> None:
        super().__init__(
            services,
            marks,
            session,
            step=step,
            recorder=recorder,
            cost=cost,
            journal=journal,
            runs_tools=tools is not None,
        )
        self._hub = services.hub
        self._closing = services.closing
        self._marks = marks
        self._executor = (
            None if tools is None else ToolExecutor(tools, self._record, self._progress_of)
        )
        self._background = Background()
        self._timer: asyncio.Task[None] | None = None
        self._calls = 0
        self._accepted: set[ToolCallID] = set()
        """Calls that run as soon as they are durable."""
        self._streamed = False

    async def run(
        self,
        call: ModelCall,
        request: LLMRequest,
        *,
        may_pause: bool = False,
        dropped: DroppedAnswers | None = None,
    ) -> TurnEnd:
        """Send the request and see it through to the end of its step.

        `may_pause`: a provider that pauses in the middle of its answer is asked to go on.
        `dropped`: what becomes of an answer that breaks off.
        Raises CancelledError when interrupted, after the step has been settled.
        """
        self._may_pause, self._dropped = may_pause, dropped
        await self._marks.mark_dispatched(self._session.id, self._step)
        session_id, recorder = self._session.id, self._recorder
        with self._hub.answers.streaming(session_id, recorder.message_id, recorder.streamed):
            failure = None
            async with self._settling() as group:
                failure = await self._stream(group, call, request)
            return await self._end(failure)

    @asynccontextmanager
    async def _settling(self) -> AsyncGenerator[asyncio.TaskGroup]:
        """The scope of the turn and its calls. However it ends, the step is settled.

        If only this process ends, it is settled as far as another one could not do better.
        """
        try:
            async with self._background, asyncio.TaskGroup() as group:
                yield group
        except asyncio.CancelledError:
            if self._closing():
                await shielded(self._suspend())
            else:
                await shielded(self._settle_step(INTERRUPTED, TURN_INTERRUPTED))
            raise
        except BaseExceptionGroup as raised:
            _, others = raised.split(_DeclinedError)
            if others is not None:
                error = others.exceptions[0]
                # A step that another process has taken over is that process's to settle.
                if not isinstance(error, LeaseHeldError):
                    await shielded(self._settle_step(INTERRUPTED, TURN_BROKEN))
                raise error from raised
            failure = None if self._executor is None else self._executor.failure
            reason, unsettled = failure or TURN_DECLINED, failure or INTERRUPTED
            await shielded(self._settle_step(unsettled, reason, fails=failure is not None))
            self._declined = True

    # ---- the answer as it arrives ---------------------------------------------------------------

    async def _stream(
        self, group: asyncio.TaskGroup, call: ModelCall, request: LLMRequest
    ) -> LLMError | None:
        asked = call, request
        while True:
            stream, raised = call(request), None
            try:
                # Read past the finish event to the end: the connection is then reused.
                async for batch in stream:
                    await self._take(group, batch)
            except LLMError as error:
                raised = error
            except MemoryError:
                if self._log.failed:
                    raise
                return LLMError("unknown", TURN_OUT_OF_MEMORY)
            finally:
                if self._timer is not None:
                    self._timer.cancel()
                    self._timer = None
                await close_stream(stream)
            if raised is None and not self._recorder.over:
                raised = LLMError("transport", "The answer ended before it was complete")
            again = await self._go_on(group, *asked, self._failure(raised))
            if again is None:
                self._streamed = raised is None and self._recorder.finish is not None
                return raised
            call, request = again

    async def _go_on(
        self,
        group: asyncio.TaskGroup,
        call: ModelCall,
        request: LLMRequest,
        failure: LLMError | None,
    ) -> tuple[ModelCall, LLMRequest] | None:
        """How an answer that broke off goes on as part of this step, if it does."""
        if failure is None or self._dropped is None or not self._recorder.started:
            return None
        self._add_taken()
        await self._flush(group)
        return await self._dropped.go_on(self._recorder, call, request, failure)

    async def _take(self, group: asyncio.TaskGroup, batch: Sequence[LLMEvent]) -> None:
        now = self._clock.now_millis()
        # Kept on self, not in this frame: an interrupt between two of them must lose no fact.
        self._taken.extend(self._recorder.feed(batch, now=now, fragments=self._hub.has_readers))
        runs = False
        while self._taken:
            item = self._taken.popleft()
            if not isinstance(item, Fragment):
                self._log.add(item)
                if isinstance(item, ToolCalled) and not item.provider.executed:
                    runs = self._accept(item) or runs
                continue
            if not self._log.is_empty:
                await self._flush(group)
            self._hub.publish(item, self._location)
        if runs:
            await self._flush(group)
        elif not self._log.is_empty and not self._recorder.over:
            self._flush_soon(group)

    def _flush_soon(self, group: asyncio.TaskGroup) -> None:
        """Commit the pending facts shortly, together with those that arrive until then."""
        if self._timer is None:
            # A task of the group from the start: a group that is ending takes no new ones.
            self._timer = group.create_task(self._flush_later(group), name="record")

    async def _flush_later(self, group: asyncio.TaskGroup) -> None:
        await asyncio.sleep(_FLUSH_SECONDS)
        self._timer = None
        await self._flush(group)

    async def _flush(self, group: asyncio.TaskGroup) -> None:
        committed = await self._log.commit()
        if self._executor is None:
            return
        for event in committed:
            if isinstance(event, ToolCalled) and event.call_id in self._accepted:
                self._accepted.remove(event.call_id)
                name = f"tool {event.tool}"
                group.create_task(self._run_call(self._executor, event), name=name)

    def _accept(self, call: ToolCalled) -> bool:
        """Whether the call is run once it is durable; if not, its refusal follows it."""
        self._calls += 1
        if self._executor is None:
            message = turn_recorder.TOOLS_DISABLED
        elif self._calls > limits.TOOL_CALLS_PER_TURN_MAX:
            message = _TOO_MANY_CALLS
        else:
            self._accepted.add(call.call_id)
            return True
        now = self._clock.now_millis()
        self._log.add(self._recorder.failed(call.call_id, now=now, message=message))
        return False

    # ---- tool calls and their results -----------------------------------------------------------

    async def _run_call(self, executor: ToolExecutor, call: ToolCalled) -> None:
        await executor.settle(call)
        if executor.declined:
            raise _DeclinedError

    async def _record(self, call: ToolCalled, outcome: Succeeded | ToolError) -> None:
        now = self._clock.now_millis()
        events: list[SessionEvent] = []
        success = None if isinstance(outcome, ToolError) else outcome
        if isinstance(outcome, ToolError):
            message = outcome.message
            events.append(self._recorder.failed(call.call_id, now=now, message=message))
        else:
            events += tool_execution.todos_updated(call, outcome, now)
            events.append(
                self._recorder.succeeded(
                    call.call_id,
                    now=now,
                    structured=outcome.output.structured,
                    content=outcome.output.content,
                    output_paths=outcome.output.output_paths,
                )
            )
        # The last result ends the step, in the same commit.
        ends = self._streamed and not self._recorder.unsettled and self._log.is_empty
        ending = self._step_ended(now) if ends else []
        if await self._log.append(
            events, success=success, ending=ending, continues=self._continues
        ):
            self._step_settled = True
        for event in events:
            if isinstance(event, TodosUpdated):
                changed = TodosChanged(session_id=event.session_id, todos=event.todos)
                self._hub.publish(changed, self._location)

    def _progress_of(self, call: ToolCalled) -> ToolProgress:
        record = partial(self._record_progress, call)
        return ToolProgress(record, background=self._background, clock=self._clock)

    async def _record_progress(self, call: ToolCalled, progress: Progress) -> None:
        if self._step_settled or not self._recorder.is_unsettled(call.call_id):
            return
        event = ToolProgressed(
            timestamp=self._clock.now_millis(),
            session_id=call.session_id,
            assistant_message_id=call.assistant_message_id,
            call_id=call.call_id,
            structured=progress.structured,
            content=progress.content,
        )
        # Progress is not worth a failure: if the store fails, recording the result meets that.
        with suppress(DatabaseError, LeaseHeldError):
            await self._store.append(
                call.session_id, [event], location=self._location, running=True
            )

    @property
    def _location(self) -> LocationRef:
        return self._session.location
