"""The end of a step: how its turn went on, and which facts settle it.

The base of runtime.turn.provider_turn, which reads the answer and runs its calls. However the turn
ends, its step is settled once: it ended, failed, was interrupted, or broke off and is asked for
again. If only this process ends, it is settled as far as another one could not do better.
"""

from collections import deque
from collections.abc import Callable

from perdure.core.request.dropped_answer import RESTARTED
from perdure.core.session.recovery import CUT_OFF, INTERRUPTED
from perdure.core.session.turn_recorder import Fragment, Output, TurnRecorder
from perdure.llm.error import LLMError
from perdure.llm.event import Usage
from perdure.runtime.files.step_journal import StepJournal, UnjournaledStep
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.retries import DroppedAnswers
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.step_log import StepLog
from perdure.runtime.turn.turn_end import TurnEnd
from perdure.schema.session.event import MessageExcluded, SessionEvent
from perdure.schema.session.session import SessionInfo
from perdure.store.tables import pending_table


class StepSettlement:
    def __init__(
        self,
        services: RunServices,
        marks: RequestMarks,
        session: SessionInfo,
        *,
        step: int,
        recorder: TurnRecorder,
        cost: Callable[[Usage], float],
        journal: StepJournal | UnjournaledStep,
        runs_tools: bool,
    ) -> None:
        self._store = services.store
        self._clock = services.clock
        self._log = StepLog(services.store, marks, session)
        self._session = session
        self._step = step
        self._recorder = recorder
        self._cost = cost
        self._journal = journal
        self._runs_tools = runs_tools
        self._taken: deque[Output] = deque()
        self._may_pause = False
        self._dropped: DroppedAnswers | None = None
        self._step_settled = False
        self._declined = False

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
        if (restarts := await self._restart(self._failure(failure))) is not None:
            return restarts
        await self._conclude(failure)
        done = failure is None and self._recorder.provider_error is None
        continues = done and self._continues
        paused = continues and self._paused
        return TurnEnd(step=self._step, continues=continues, paused=paused, answered=done)

    def _overflow(self, failure: LLMError | None) -> str | None:
        """The provider's message that the request was too large, before any answer began."""
        error = self._recorder.provider_error if failure is None else failure
        if error is None or not error.overflow or self._recorder.started:
            return None
        return error.message

    def _failed_at_once(self, failure: LLMError | None) -> LLMError | None:
        """A failure that may pass or be mended, before any answer began."""
        failure = self._failure(failure)
        if failure is None or self._recorder.started or self._step_settled:
            return None
        return failure if failure.may_pass or failure.reason == "native-part" else None

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

    async def _restart(self, failure: LLMError | None) -> TurnEnd | None:
        """Settle an answer that broke off and is asked for again from the start, if it is."""
        if failure is None or self._dropped is None or self._step_settled or self._log.failed:
            return None
        retry = self._dropped.restart(self._recorder, failure)
        if retry is None:
            return None
        now, message_id = self._clock.now_millis(), self._recorder.message_id
        self._add_taken()
        self._log.add(*self._recorder.flush(now=now))
        self._step_settled = True
        # What was said stays visible; the model says it anew, and is not shown it twice.
        self._log.add(MessageExcluded(now, self._session.id, message_id=message_id))
        reason = f"{failure.message}. {RESTARTED}."
        self._log.add(*self._recorder.step_failed(reason, now=now))
        await self._log.commit(continues=True)
        return TurnEnd(step=self._step, failed=failure, retry=retry)

    async def _settle_step(self, unsettled: str, reason: str, *, fails: bool = False) -> None:
        """Fail open calls and the step.

        End the step instead if its answer was complete, unless it `fails` all the same.
        """
        # After a failed write only the log knows what is open: see runtime.turn.ownership.
        if self._step_settled or self._log.failed:
            return
        now = self._clock.now_millis()
        self._add_taken()
        self._log.add(*self._recorder.flush(now=now))
        self._log.add(*self._recorder.fail_unsettled(unsettled, now=now))
        self._step_settled = True
        if self._recorder.finish is not None and not fails:
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
        """Whether the model waits for results of ours or to go on, if its answer is complete."""
        if self._recorder.provider_error is not None:
            return False
        return self._paused or (self._recorder.local_calls > 0 and self._runs_tools)

    @property
    def _paused(self) -> bool:
        finish = self._recorder.finish
        return self._may_pause and finish is not None and finish.paused

    def _failure(self, raised: LLMError | None) -> LLMError | None:
        """Why the answer is not complete, as the connection or the provider says."""
        error = self._recorder.provider_error
        if raised is None and error is not None:
            return LLMError(error.reason, error.message, retry_after_ms=error.retry_after_ms)
        return raised
