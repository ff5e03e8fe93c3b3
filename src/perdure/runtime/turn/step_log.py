"""Commits the facts of one step, in order, and keeps those that no commit holds yet.

A provider may send more facts at once than one transaction takes: they are committed in several,
and any prefix of them is a log that recovery can settle. A fact leaves the list of those that wait
only when it is durable. After a failed write only the log knows what is open: nothing more is
written here, and runtime.turn.ownership settles the step from the log.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress

from perdure.core.session import recovery
from perdure.ports import DatabaseError, Transaction
from perdure.runtime.tasks import shielded
from perdure.runtime.turn.request_marks import RequestMarks
from perdure.runtime.turn.tool_execution import Succeeded
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.event import SessionEvent, StepEnded, StepFact, StepFailed
from perdure.schema.session.session import SessionInfo
from perdure.store.log.event_store import EventStore
from perdure.store.processes.lease_table import LeaseHeldError
from perdure.store.tables import instruction_table, message_table, task_table


class StepUnrecordedError(Exception):
    """Facts of a step could not be written, and not because the store failed."""


class StepLog:
    def __init__(self, store: EventStore, marks: RequestMarks, session: SessionInfo) -> None:
        self._store = store
        self._marks = marks
        self._session = session
        self._waiting: list[SessionEvent] = []
        self._committing = asyncio.Lock()
        self._writing = 0
        """Appends that are under way."""
        self.failed = False
        """Whether a write has failed; nothing is written after it."""
        self.is_cut = False
        """Whether a process that has died or stopped began the step: its end is no progress."""

    @property
    def is_empty(self) -> bool:
        """Whether every fact that was added is durable."""
        return not self._waiting

    def add(self, *facts: SessionEvent) -> None:
        """Facts that the next commit holds."""
        self._waiting.extend(facts)

    async def commit(
        self, *, continues: bool = False, suspends: bool = False
    ) -> Sequence[SessionEvent]:
        """Commit what waits, even if this task is cancelled; returns what was committed.

        `continues`: if these facts settle the step, the model waits for tool results. `suspends`:
        the process ends, and the request of an answer that this cuts stays marked as sent.
        """
        if not self._waiting:
            return ()
        return await shielded(self._commit(continues=continues, suspends=suspends))

    async def _commit(self, *, continues: bool, suspends: bool) -> Sequence[SessionEvent]:
        committed: list[SessionEvent] = []
        async with self._committing:
            # After a failed write it is not known whether the first of them are durable.
            while self._waiting and not self.failed:
                piece = self._store.first_piece(self._waiting)
                await self._append(piece, continues=continues, suspends=suspends)
                del self._waiting[: len(piece)]
                committed += piece
        return committed

    async def append(
        self,
        facts: Sequence[SessionEvent],
        *,
        success: Succeeded | None = None,
        ending: Sequence[SessionEvent] = (),
        continues: bool = False,
    ) -> bool:
        """Commit the outcome of a call, and the `ending` of the step; whether the step is over.

        While other outcomes are being written it is not certain that this is the last one. Then the
        ending is left out if the log still has an open call.
        """
        if ending and not self.failed:
            with suppress(_CallOpenError):
                whole = [*facts, *ending]
                await self._append(whole, success=success, continues=continues)
                return True
        await self._append(facts, success=success)
        return False

    async def _append(
        self,
        facts: Sequence[SessionEvent],
        *,
        success: Succeeded | None = None,
        continues: bool = False,
        suspends: bool = False,
    ) -> None:
        session_id = self._session.id
        settles = isinstance(facts[-1], StepEnded if suspends else StepEnded | StepFailed)
        ended = isinstance(facts[-1], StepEnded) and not (suspends or self.is_cut)
        certain = self._writing == 0

        async def within(tx: Transaction, seq: Seq) -> None:
            if success is not None:
                await instruction_table.add(tx, session_id, success.discovered)
            if success is not None and success.delivers is not None:
                await task_table.set_state(tx, success.delivers, "delivered")
            if settles:
                if not certain:
                    await _require_settled_calls(tx, session_id, facts[-1])
                await self._marks.settle(tx, session_id, continues=continues, ended=ended)

        self._writing += 1
        try:
            await self._store.append(
                session_id,
                facts,
                location=self._session.location,
                running=True,
                within=within if success is not None or settles else None,
            )
        except (DatabaseError, LeaseHeldError, SessionNotFoundError):
            self.failed = True
            raise
        except _CallOpenError:
            raise
        except Exception as error:
            self.failed = True
            raise StepUnrecordedError(f"The answer could not be recorded: {error}") from error
        finally:
            self._writing -= 1


class _CallOpenError(Exception):
    """A step was about to end, and the outcome of one of its calls was not written."""


async def _require_settled_calls(tx: Transaction, session_id: SessionID, end: SessionEvent) -> None:
    assert isinstance(end, StepFact)
    row = await message_table.get(tx, session_id, end.assistant_message_id)
    if row is not None and recovery.has_open_calls(row.message()):
        raise _CallOpenError
