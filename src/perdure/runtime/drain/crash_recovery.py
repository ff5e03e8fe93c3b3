"""What is done about a run that a crash, or a store that failed, cut off.

core.session.recovery says what was left. Where it leaves a choice, the configuration has it, or a
person: then the Session waits, and nothing of it is written to the log before they have decided.
Settling calls and steps that were left open comes before all this: see runtime.turn.ownership.
"""

import logging
from functools import partial
from typing import assert_never

from msgspec import UNSET

from perdure.core.config_file.entries import RecoveryPolicy
from perdure.core.session import recovery
from perdure.core.session.drain import DrainStep, RunTurn, Stop
from perdure.core.session.recovery import (
    AskPerson,
    Attempt,
    GiveUp,
    NothingDue,
    SendRequest,
    Unclear,
)
from perdure.ports import Transaction
from perdure.runtime.turn import failed_step, model_choice
from perdure.runtime.turn.model_choice import ChosenModel
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.services import RunServices
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.session.message import AssistantMessage
from perdure.schema.session.recovery import WaitReason
from perdure.schema.session.session import SessionInfo
from perdure.store.tables import attempt_table, message_table, notice_table
from perdure.store.tables.notice_table import Notice

logger = logging.getLogger(__name__)


class CrashRecovery:
    def __init__(self, services: RunServices, marks: RequestMarks) -> None:
        self._services = services
        self._store = services.store
        self._marks = marks
        self._waiting: dict[SessionID, WaitReason] = {}

    def waits(self, session_id: SessionID) -> WaitReason | None:
        """Why the last run here left a Session to a person, if it did."""
        return self._waiting.get(session_id)

    def forget(self, session_id: SessionID) -> None:
        """The Session owes nothing: a person has decided, in this or another process."""
        self._waiting.pop(session_id, None)

    async def first_step(
        self, session_id: SessionID, attempt: Attempt | None, step: DrainStep
    ) -> DrainStep:
        """How a run begins that finds `attempt`; `step` is how it would without one."""
        self._waiting.pop(session_id, None)
        if attempt is None:
            return step
        verdict = recovery.classify(attempt)
        match verdict:
            case NothingDue():
                self._marks.take_charge(session_id)
                return step
            case SendRequest(step=number):
                return await self._again(session_id, attempt, step, number)
            case AskPerson(reason=reason):
                return await self._wait(session_id, attempt, step, reason)
            case GiveUp():
                return await self._give_up(session_id, attempt, step)
            case Unclear(step=number):
                return await self._by_policy(session_id, attempt, step, number)
            case _:
                assert_never(verdict)

    async def _by_policy(
        self, session_id: SessionID, attempt: Attempt, step: DrainStep, number: int
    ) -> DrainStep:
        policy = await self._policy(await self._store.load_session(session_id))
        match policy:
            case "ask":
                return await self._wait(session_id, attempt, step, "unclear")
            case "retry":
                return await self._again(session_id, attempt, step, number)
            case "abandon":
                return await self._give_up(session_id, attempt, step)

    async def _policy(self, session: SessionInfo) -> RecoveryPolicy:
        """What the configuration says; else, whether sending it twice would be paid for twice."""
        async with self._services.locations.hold(session.location) as location:
            if location.settings.recovery is not None:
                return location.settings.recovery
            chosen = model_choice.choose(session, location)
            return "retry" if isinstance(chosen, ChosenModel) and chosen.model.free else "ask"

    async def _again(
        self, session_id: SessionID, attempt: Attempt, step: DrainStep, number: int
    ) -> DrainStep:
        if (await self._store.load_session(session_id)).revert is not UNSET:
            # A revert is staged: nothing is sent until it is committed or cleared.
            return await self._give_up(session_id, attempt, step)
        if not (isinstance(step, RunTurn) and step.promotion == "steer"):
            # Else the turn takes in what a client sent since, and the model answers that.
            await self._tell_of_cut(session_id)
        self._marks.take_charge(session_id)
        return RunTurn("steer", number)

    async def _tell_of_cut(self, session_id: SessionID) -> None:
        """Tell the model that its last answer was cut, if a part of it is in the history."""
        step = await self._store.database.read(lambda tx: _load_cut_answer(tx, session_id))
        if step is None:
            return
        notice = Notice(
            id=recovery.go_on_id(step),
            session_id=session_id,
            text=recovery.GO_ON,
            time_created=self._services.clock.now_millis(),
        )

        async def put(tx: Transaction) -> None:
            await notice_table.put(tx, notice)

        await self._store.leases.write_running(session_id, put)

    async def _wait(
        self, session_id: SessionID, attempt: Attempt, step: DrainStep, reason: WaitReason
    ) -> DrainStep:
        """Leave it to a person, unless new input arrived while the run was taken over."""

        async def job(tx: Transaction) -> bool:
            await self._store.leases.hold_within(tx, session_id)
            return await attempt_table.set_waiting(tx, session_id, reason)

        if await self._store.database.write(job):
            return await self._give_up(session_id, attempt, step)
        self._waiting[session_id] = reason
        logger.warning(
            "Session %s waits for a decision: %s. Show it and decide with `perdure recover %s`.",
            session_id,
            recovery.WAITING[reason],
            session_id,
        )
        return Stop()

    async def _give_up(self, session_id: SessionID, attempt: Attempt, step: DrainStep) -> DrainStep:
        # What waits behind the request is still owed, and the drain goes on with it.
        self._marks.take_charge(session_id)
        if attempt.state == "begun":
            # Nothing was promoted: there is nothing to fail.
            await self._store.leases.write_running(
                session_id, lambda tx: attempt_table.begin_anew(tx, session_id)
            )
            return step
        if await self._store.database.read(lambda tx: _load_cut_answer(tx, session_id)) is not None:
            # What there is of the answer is a failed step already.
            await self._store.leases.write_running(session_id, partial(_release, session_id))
            return step
        session = await self._store.load_session(session_id)
        agent = "" if session.agent is UNSET else session.agent
        await failed_step.record(self._services, session, agent=agent, reason=recovery.ABANDONED)
        return step


async def _release(session_id: SessionID, tx: Transaction) -> None:
    await attempt_table.release(tx, session_id)


async def _load_cut_answer(tx: Transaction, session_id: SessionID) -> MessageID | None:
    """The newest step, if its answer was cut when its process died or stopped."""
    newest = await message_table.latest_conversation_message(tx, session_id)
    step = None if newest is None else newest.message()
    if not isinstance(step, AssistantMessage) or step.error is UNSET:
        return None
    return step.id if step.error.message == recovery.CUT_OFF else None
