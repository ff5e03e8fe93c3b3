"""Waits before a request is sent again: durable, visible, and ended at once by an interrupt.

Whether and when is decided by core.session.retry. A turn that waits has an entry in the store, so
that the next run of the Session goes on waiting instead of starting anew. The entry is removed
just before the request goes out: what may have reached a provider is not sent again by itself.
An answer whose connection broke goes on or begins again, as core.request.dropped_answer says.
"""

import asyncio
from collections.abc import AsyncGenerator

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.config_file.entries import DropPolicy
from perdure.core.request import dropped_answer
from perdure.core.request.dropped_answer import CONTINUED, Continuation
from perdure.core.session import retry
from perdure.core.session.retry import Patience, Retry
from perdure.core.session.turn_recorder import TurnRecorder
from perdure.llm.error import LLMError
from perdure.llm.event import LLMEvent
from perdure.llm.model_call import ModelCall
from perdure.llm.request import LLMRequest
from perdure.net.streams import close_stream
from perdure.ports import Transaction
from perdure.runtime.tasks import shielded
from perdure.runtime.turn import failed_step
from perdure.runtime.turn.services import RunServices
from perdure.runtime.turn.turn_end import TURN_INTERRUPTED
from perdure.schema.codec import JsonObject
from perdure.schema.ids import Seq, SessionID
from perdure.schema.live_event import StatusChanged
from perdure.schema.session.event import Retried
from perdure.schema.session.status import SessionBusy, SessionRetrying, SessionStatus
from perdure.schema.session.tool import RetryError
from perdure.store.tables import attempt_table, retry_table


class Retries:
    def __init__(self, services: RunServices) -> None:
        self._services = services
        self._store = services.store

    def plan(
        self, error: LLMError, *, failed: int, step: int, waited: int, patience: Patience
    ) -> Retry | None:
        """When to send it again after its `failed`-th attempt; None: not any more.

        `waited`: all its waits so far, in milliseconds.
        """
        chance = self._services.chance.random()
        delay = retry.delay_seconds(
            error, failed=failed, chance=chance, waited=waited / 1000, patience=patience
        )
        if delay is None:
            return None
        millis = round(delay * 1000)
        due = self._services.clock.now_millis() + millis
        return Retry(
            failed=failed,
            due=due,
            delay=millis,
            step=step,
            message=error.message,
            waited=waited + millis,
        )

    async def wait(
        self, session_id: SessionID, waits: Retry, *, because: LLMError | None = None
    ) -> None:
        """Record what has just failed, if anything has, and wait until it may be sent again.

        An interrupt fails the step. The end of this process does not: the next one goes on waiting.
        """
        try:
            if because is not None:
                await shielded(self._record(session_id, waits, because))
            self._tell(session_id, waits)
            await self._sleep(waits)
        except asyncio.CancelledError:
            await shielded(self.interrupted(session_id))
            raise

    async def wait_within_step(self, session_id: SessionID, waits: Retry, error: LLMError) -> None:
        """Record that an answer broke off, and wait until it goes on as part of its step.

        If the process ends meanwhile, the step is one that was cut.
        """
        session = await self._store.load_session(session_id)
        retried = self._retried(session_id, waits, error, answer=CONTINUED)
        await self._store.append(session_id, [retried], location=session.location, running=True)
        self._tell(session_id, waits)
        clock = self._services.clock
        await clock.sleep(retry.remaining_seconds(waits, now=clock.now_millis()))
        self._tell(session_id, None)

    async def interrupted(self, session_id: SessionID) -> None:
        """A turn that waited will not be sent, unless it is only this process that ends."""
        if not self._services.closing():
            await self._give_up(session_id)

    async def begin(self, session_id: SessionID) -> None:
        """The request goes out now."""
        await self._store.leases.write_running(
            session_id, lambda tx: retry_table.clear(tx, session_id)
        )
        self._tell(session_id, None)

    async def _sleep(self, waits: Retry) -> None:
        """Sleep until the retry is due, by the clock or by the time that has passed."""
        clock = self._services.clock
        left = retry.remaining_seconds(waits, now=clock.now_millis())
        while True:
            # In short sleeps: a machine that was suspended did not count the time.
            slept = min(left, limits.RETRY_LOOK_SECONDS)
            await clock.sleep(slept)
            left = min(left - slept, (waits.due - clock.now_millis()) / 1000)
            if left <= 0:
                return

    async def _record(self, session_id: SessionID, waits: Retry, error: LLMError) -> None:
        session = await self._store.load_session(session_id)
        retried = self._retried(session_id, waits, error)

        async def within(tx: Transaction, seq: Seq) -> None:
            await retry_table.put(tx, session_id, waits)
            # It was refused, so it is not out there any more.
            await attempt_table.put(tx, session_id, "prepared", step=waits.step)

        await self._store.append(
            session_id, [retried], location=session.location, running=True, within=within
        )

    def _retried(
        self, session_id: SessionID, waits: Retry, error: LLMError, **metadata: str
    ) -> Retried:
        return Retried(
            timestamp=self._services.clock.now_millis(),
            session_id=session_id,
            attempt=waits.failed,
            error=RetryError(
                message=error.message,
                is_retryable=True,
                status_code=UNSET if error.status is None else error.status,
                metadata={"reason": error.reason, **metadata},
            ),
            next=waits.due,
        )

    async def _give_up(self, session_id: SessionID) -> None:
        await self.begin(session_id)
        session = await self._store.load_session(session_id)
        agent = "" if session.agent is UNSET else session.agent
        await failed_step.record(self._services, session, agent=agent, reason=TURN_INTERRUPTED)

    def _tell(self, session_id: SessionID, waits: Retry | None) -> None:
        status: SessionStatus = SessionBusy()
        if waits is not None:
            status = SessionRetrying(waits.failed, waits.message, waits.due)
        self._services.hub.publish(StatusChanged(session_id=session_id, status=status), None)


class DroppedAnswers:
    """What becomes of one answer if it breaks off."""

    def __init__(
        self,
        retries: Retries,
        session_id: SessionID,
        *,
        policy: DropPolicy,
        form: JsonObject | None,
        patience: Patience,
        failures: int,
        waited: int,
        step: int,
    ) -> None:
        """`form`: how the model is sent the beginning of an answer; None if it cannot go on.

        `failures` and `waited` count what the request has failed and waited before.
        """
        self._retries = retries
        self._session_id = session_id
        self._policy = policy
        self._form = form if policy == "continue" else None
        self._patience = patience
        self._failures = failures
        self._waited = waited
        self._step = step
        self._continued = 0

    async def go_on(
        self, recorder: TurnRecorder, call: ModelCall, request: LLMRequest, failure: LLMError
    ) -> tuple[ModelCall, LLMRequest] | None:
        """Wait, and return how the answer goes on; None if it does not, or begins again.

        What was recorded before must be durable.
        """
        if not dropped_answer.may_go_on(recorder, failure):
            return None
        prefix = dropped_answer.prefix_of(recorder, self._form)
        if prefix is None or self._continued >= limits.ANSWER_CONTINUATIONS_MAX:
            return None
        self._continued += 1
        waits = self._plan(failure, failed=self._continued)
        if waits is None:
            return None
        self._waited = waits.waited
        await self._retries.wait_within_step(self._session_id, waits, failure)
        mapping = Continuation(recorder, self._continued)
        return _mapped(call, mapping), replace(request, prefix=prefix)

    def restart(self, recorder: TurnRecorder, failure: LLMError) -> Retry | None:
        """When the answer is asked for again from the start; None: not at all."""
        # Whatever fails a continuation, the connection broke before it.
        broke = LLMError("transport", failure.message) if self._continued else failure
        if self._policy == "fail" or not dropped_answer.may_go_on(recorder, broke):
            return None
        return self._plan(broke, failed=self._failures + 1)

    def _plan(self, failure: LLMError, *, failed: int) -> Retry | None:
        return self._retries.plan(
            failure,
            failed=failed,
            step=self._step,
            waited=self._waited,
            patience=self._patience,
        )


def with_retries(call: ModelCall, services: RunServices) -> ModelCall:
    """The same call with retries, for requests beside the conversation.

    Nothing of it is durable: after a restart the caller asks again.
    """

    async def asked(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        failed, begun, waited = 0, False, 0.0
        while True:
            stream = call(request)
            try:
                async for batch in stream:
                    begun = True
                    yield batch
            except LLMError as error:
                failed += 1
                chance = services.chance.random()
                delay = retry.delay_seconds(error, failed=failed, chance=chance, waited=waited)
                if begun or delay is None:
                    raise
                waited += delay
            else:
                return
            finally:
                await close_stream(stream)
            await services.clock.sleep(delay)

    return asked


def _mapped(call: ModelCall, continuation: Continuation) -> ModelCall:
    async def asked(request: LLMRequest) -> AsyncGenerator[tuple[LLMEvent, ...]]:
        stream = call(request)
        try:
            async for batch in stream:
                yield continuation.map(batch)
        finally:
            await close_stream(stream)

    return asked
