"""One Provider Turn: send a request, record its streamed answer, run its tool calls.

Facts are committed before anything that follows from them becomes visible: a text fragment waits
for the start of its part, a tool for the record of its call, the end of the step for every tool
result. Facts that nothing waits for share a commit. However the turn ends, its step is settled.
"""

import asyncio
from collections import deque
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Final

from perdure.core import limits
from perdure.core.session import turn_recorder
from perdure.core.session.recovery import CUT_OFF, INTERRUPTED
from perdure.core.session.turn_recorder import Fragment, Output, TurnRecorder
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
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.step_log import StepLog
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
from perdure.store.tables import pending_table
from perdure.tools.api.registry import ToolError
from perdure.tools.api.tool import Progress

_TOO_MANY_CALLS = f"Too many calls in one turn; at most {limits.TOOL_CALLS_PER_TURN_MAX} are run."
_FLUSH_SECONDS: Final = 0.02


class _DeclinedError(Exception):
    """Ends the whole turn from inside one of its tool calls."""


class ProviderTurn:
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
        self._store = services.store
        self._hub = services.hub
        self._clock = services.clock
        self._closing = services.closing
        self._marks = marks
        self._log = StepLog(services.store, marks, session)
        self._session = session
        self._step = step
        self._recorder = recorder
        self._journal = journal
        self._cost = cost
        self._executor = (
            None if tools is None else ToolExecutor(tools, self._record, self._progress_of)
        )
        self._background = Background()
        self._taken: deque[Output] = deque()
        self._timer: asyncio.Task[None] | None = None
        self._calls = 0
        self._accepted: set[ToolCallID] = set()
        """Calls that run as soon as they are durable."""
        self._streamed = False
        self._step_settled = False
        self._declined = False

    async def run(self, call: ModelCall, request: LLMRequest) -> TurnEnd:
        """Send the request and see it through to the end of its step.

        Raises CancelledError when interrupted, after the step has been settled.
        """
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
            await shielded(self._settle_step(INTERRUPTED, TURN_DECLINED))
            self._declined = True

    # ---- the answer as it arrives ---------------------------------------------------------------

    async def _stream(
        self, group: asyncio.TaskGroup, call: ModelCall, request: LLMRequest
    ) -> LLMError | None:
        stream = call(request)
        try:
            # Read past the finish event to the end: the connection is then reused.
            async for batch in stream:
                await self._take(group, batch)
        except LLMError as error:
            return error
        except MemoryError:
            if self._log.failed:
                raise
            return LLMError("unknown", TURN_OUT_OF_MEMORY)
        finally:
            if self._timer is not None:
                self._timer.cancel()
            await close_stream(stream)
        if not self._recorder.over:
            return LLMError("transport", "The answer ended before it was complete")
        self._streamed = self._recorder.finish is not None
        return None

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

    # ---- the end of the step --------------------------------------------------------------------

    async def _end(self, failure: LLMError | None) -> TurnEnd:
        if self._declined:
            return TurnEnd(step=self._step, declined=True)
        overflow = self._overflow(failure)
        if overflow is not None:
            self._add_taken()
            await self._log.commit()
            return TurnEnd(step=self._step, overflow=overflow)
        failed = self._failed_at_once(failure)
        if failed is not None:
            return TurnEnd(step=self._step, failed=failed)
        await self._conclude(failure)
        done = failure is None and self._recorder.provider_error is None
        return TurnEnd(step=self._step, continues=done and self._continues, answered=done)

    def _overflow(self, failure: LLMError | None) -> str | None:
        """The provider's message that the request was too large, before any answer began."""
        error = self._recorder.provider_error if failure is None else failure
        if error is None or not error.overflow or self._recorder.started:
            return None
        return error.message

    def _failed_at_once(self, failure: LLMError | None) -> LLMError | None:
        """A failure that may pass or be mended, before any answer began."""
        error = self._recorder.provider_error
        if failure is None and error is not None:
            failure = LLMError(error.reason, error.message, retry_after_ms=error.retry_after_ms)
        if failure is None or self._recorder.started or self._step_settled:
            return None
        mended = failure.reason == "native-part"
        return failure if failure.may_pass or mended else None

    async def _conclude(self, failure: LLMError | None) -> None:
        error = self._recorder.provider_error
        if failure is not None:
            await self._settle_step(INTERRUPTED, failure.message)
        elif error is not None:
            await self._settle_step(INTERRUPTED, error.message)
        elif not self._step_settled:
            self._add_taken()
            self._step_settled = True
            self._log.add(*self._step_ended(self._clock.now_millis()))
            await self._log.commit(continues=self._continues)

    async def _settle_step(self, unsettled: str, reason: str) -> None:
        """Fail open calls and the step; end the step instead if its answer was complete."""
        # After a failed write only the log knows what is open: see runtime.turn.ownership.
        if self._step_settled or self._log.failed:
            return
        now = self._clock.now_millis()
        self._add_taken()
        self._log.add(*self._recorder.flush(now=now))
        self._log.add(*self._recorder.fail_unsettled(unsettled, now=now))
        self._step_settled = True
        if self._recorder.finish is not None:
            self._log.add(*self._step_ended(now))
        else:
            self._log.add(*self._recorder.step_failed(reason, now=now))
        await self._log.commit()

    async def _suspend(self) -> None:
        """Record what is known, so that the next process goes on from there."""
        # If nothing came back, what becomes of the request is decided when it is taken up.
        if self._step_settled or self._log.failed or not self._recorder.started:
            return
        session_id, message_id = self._session.id, self._recorder.message_id
        waiting = await self._store.database.read(
            lambda tx: pending_table.list_waiting_calls(tx, session_id, message_id)
        )
        now = self._clock.now_millis()
        self._add_taken()
        self._log.add(*self._recorder.flush(now=now))
        self._log.add(*self._recorder.fail_cut(now=now, leave=waiting))
        # Calls that wait go on in the next process, which asks under the same ids.
        if not waiting:
            self._step_settled = True
            if self._recorder.finish is None and self._recorder.local_calls:
                self._recorder.finish_with_calls()
            done = self._recorder.finish is not None
            self._log.add(
                *(self._step_ended(now) if done else self._recorder.step_failed(CUT_OFF, now=now))
            )
        await self._log.commit(continues=self._continues and not waiting, suspends=True)

    def _step_ended(self, now: int) -> list[SessionEvent]:
        finish = self._recorder.finish
        assert finish is not None
        cost = 0.0 if finish.usage is None else self._cost(finish.usage)
        return [
            *self._recorder.fail_hosted(now=now),
            *self._recorder.step_ended(now=now, cost=cost, after=self._journal.snapshot),
        ]

    def _add_taken(self) -> None:
        """Facts of a batch that was not recorded to its end."""
        self._log.add(*(item for item in self._taken if not isinstance(item, Fragment)))
        self._taken.clear()

    @property
    def _continues(self) -> bool:
        """Whether the model waits for results of ours, if its answer is complete."""
        if self._recorder.provider_error is not None:
            return False
        return self._recorder.local_calls > 0 and self._executor is not None

    @property
    def _location(self) -> LocationRef:
        return self._session.location
