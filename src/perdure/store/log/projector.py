"""Projections of the log, written in the transaction that appends to it.

A batch is folded first and written once: each message and Session that it touches costs one
statement, however many of its events are in the batch. `rebuild` drops the projections and folds
the whole log again; the resulting rows are the same, byte for byte.
"""

from collections.abc import Callable, Sequence
from typing import Final, assert_never

from msgspec import UNSET

from perdure.core.session import omission, projection
from perdure.ports import Database, Transaction, UniqueViolationError
from perdure.schema.errors import DamagedRowError, PromptConflictError
from perdure.schema.ids import MessageID, Seq, SessionID, ToolCallID
from perdure.schema.session import event as events
from perdure.schema.session.event import (
    AssistantEvent,
    ExclusionEvent,
    MessageEvent,
    SessionEvent,
)
from perdure.schema.session.message import AssistantMessage, SessionMessage, ShellMessage
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.tables import (
    attempt_table,
    deletion_table,
    epoch_table,
    file_change_table,
    inbox_table,
    instruction_table,
    message_table,
    pending_table,
    retry_table,
    revert_table,
    row_checks,
    session_table,
    todo_table,
)

_REBUILD_ROWS: Final = 500


class Projected(Value, kw_only=True):
    """What an append leaves for the next one of its Session, which then need not read it again."""

    session: SessionInfo | None = None
    """None if it is not known."""
    step: AssistantMessage | None = None
    """The newest assistant message, while it is not completed."""
    is_step_known: bool = False
    """Whether `step` is known. None says then that no assistant message is incomplete."""


NOTHING_PROJECTED: Final = Projected()

_SessionOnly = (
    events.Renamed
    | events.Archived
    | events.Unarchived
    | events.BudgetChanged
    | events.RulesChanged
    | events.ModelSubstituted
    | events.Spent
    | events.RevertStaged
    | events.Forked
    | events.Retried
    | events.CompactionStarted
    | events.CompactionReported
)
"""Changes no row but the Session's own, if that."""
_RowEvent = (
    events.PromptAdmitted
    | events.PromptRevised
    | events.PromptCancelled
    | events.InboxReordered
    | events.Deleted
    | events.ShellEnded
    | events.TodosUpdated
    | events.Moved
    | events.RevertCommitted
    | events.RevertCleared
    | ExclusionEvent
)
"""Changes rows besides the Session's own, and creates no message."""


async def project(
    tx: Transaction,
    session_id: SessionID,
    first: Seq,
    batch: Sequence[SessionEvent],
    *,
    known: Projected = NOTHING_PROJECTED,
    rebuilding: bool = False,
) -> Projected:
    """Fold `batch`, whose first event has sequence `first`, into the projections.

    `known` is what the append before this one returned. Some events end the Context Epoch, which is
    not a projection: `rebuilding` does not touch it.
    """
    fold = _Fold(tx, session_id, known, ends_epochs=not rebuilding)
    for offset, event in enumerate(batch):
        await fold.apply(Seq(first + offset), event)
    await fold.write()
    return fold.projected()


async def rebuild(database: Database) -> int:
    """Drop every projection and fold the log again, in one transaction; returns the event count."""

    async def job(tx: Transaction) -> int:
        for table in ("session", "session_message", "session_input", "todo"):
            await tx.execute(f"DELETE FROM {table}")
        total = 0
        deleting = await deletion_table.list_sessions(tx)
        # Oldest first, because Sessions of one millisecond are listed as they were stored.
        began = "SELECT session_id FROM event GROUP BY session_id ORDER BY min(rowid)"
        for (session_id,) in await tx.fetch(began):
            if session_id not in deleting:
                total += await rebuild_session(tx, SessionID(str(session_id)))
        return total

    return await database.write(job)


async def rebuild_session(tx: Transaction, session_id: SessionID) -> int:
    """Fold the log of a Session that has no projections; returns the event count.

    Raises DamagedRowError at the first event that cannot be read.
    """
    after, total = -1, 0
    while True:
        rows = await tx.fetch(
            "SELECT seq, type, data FROM event"
            " WHERE session_id = :session_id AND seq > :after ORDER BY seq LIMIT :limit",
            {"session_id": session_id, "after": after, "limit": _REBUILD_ROWS},
        )
        if not rows:
            return total
        batch: list[SessionEvent] = []
        for found, stored, data in rows:
            seq = after + 1 + len(batch)
            if found != seq:
                reason = f"sequence {seq} is missing"
                raise DamagedRowError(session_id, table="event", seq=seq, reason=reason)
            batch.append(row_checks.decode_event(stored, data, session_id, seq=seq))
        await project(tx, session_id, Seq(after + 1), batch, rebuilding=True)
        after += len(rows)
        total += len(rows)


class _Fold:
    """The rows that one batch touches, read once and written once."""

    def __init__(
        self, tx: Transaction, session_id: SessionID, known: Projected, *, ends_epochs: bool
    ) -> None:
        self._tx = tx
        self._session_id = session_id
        self._ends_epochs = ends_epochs
        self._session = known.session
        self._session_changed = False
        self._messages: dict[MessageID, SessionMessage] = {}
        self._is_step_known = known.is_step_known
        self._step_id = None if known.step is None else known.step.id
        """The newest assistant message, if it is known and not completed."""
        if known.step is not None:
            self._messages[known.step.id] = known.step
        self._created: dict[MessageID, Seq] = {}
        self._changed: set[MessageID] = set()
        self._unfolded: list[AssistantEvent] = []
        """Consecutive events of one assistant message, folded together."""

    async def apply(self, seq: Seq, event: SessionEvent) -> None:
        if isinstance(event, events.SessionCreated):
            await session_table.insert(self._tx, projection.session_created(event))
            return
        if not isinstance(event, projection.LeavesSession):
            await self._apply_to_session(event)
        if isinstance(event, AssistantEvent):
            await self._apply_to_assistant(event)
            return
        await self._fold()
        if isinstance(event, MessageEvent):
            await self._create(seq, event)
        elif not isinstance(event, _SessionOnly):
            await self._apply_to_rows(seq, event)

    def projected(self) -> Projected:
        """What the next append need not read, after `write`."""
        match None if self._step_id is None else self._messages.get(self._step_id):
            case AssistantMessage() as newest if newest.time.completed is UNSET:
                step = newest
            case _:
                step = None
        return Projected(session=self._session, step=step, is_step_known=self._is_step_known)

    async def write(self) -> None:
        await self._fold()
        for message_id, seq in self._created.items():
            message = self._messages[message_id]
            await message_table.insert(self._tx, self._session_id, seq, message)
        for message_id in self._changed:
            if message_id not in self._created:
                await message_table.update(self._tx, self._messages[message_id])
        if self._session_changed:
            assert self._session is not None
            await session_table.update(self._tx, self._session)

    async def _apply_to_session(self, event: SessionEvent) -> None:
        if self._session is None:
            self._session = await session_table.load(self._tx, self._session_id)
        assert self._session is not None, f"event for unknown session {self._session_id}"
        self._session = projection.session_after(self._session, event)
        self._session_changed = True

    async def _apply_to_assistant(self, event: AssistantEvent) -> None:
        if isinstance(event, events.ToolSucceeded | events.ToolFailed) and self._ends_epochs:
            await pending_table.remove_of_call(
                self._tx, self._session_id, event.assistant_message_id, event.call_id
            )
        if self._unfolded and self._unfolded[-1].assistant_message_id != event.assistant_message_id:
            await self._fold()
        self._unfolded.append(event)

    async def _fold(self) -> None:
        if not self._unfolded:
            return
        batch, self._unfolded = self._unfolded, []
        message = await self._message(batch[0].assistant_message_id)
        # A revert may have removed the assistant message; then the updates are ignored.
        if isinstance(message, AssistantMessage):
            self._change(projection.assistant_after(message, *batch))

    async def _apply_to_rows(self, seq: Seq, event: _RowEvent) -> None:
        match event:
            case events.PromptAdmitted():
                await self._admit(seq, event)
            case events.PromptRevised() | events.PromptCancelled() | events.InboxReordered():
                await inbox_table.apply_change(self._tx, event, seq)
            case events.Deleted():
                await self._delete()
            case events.ShellEnded():
                await self._end_shell(seq, event)
            case events.TodosUpdated():
                await self._write_todos(seq, event)
            case events.Moved():
                await self._leave_location()
            case events.MessageExcluded() | events.MessageRestored():
                await self._apply_exclusion(event)
            case events.RevertCommitted() | events.RevertCleared():
                await self._end_revert(event)
            case _:
                assert_never(event)

    async def _create(self, seq: Seq, event: MessageEvent) -> None:
        if isinstance(event, events.PromptPromoted):
            await self._promote(seq, event)
        elif isinstance(event, events.StepStarted):
            await self._close_last_step(seq, event)
        message = projection.message_created(event)
        if isinstance(message, AssistantMessage):
            self._step_id, self._is_step_known = message.id, True
        if message.id in self._created:
            raise UniqueViolationError(f"message {message.id} is created twice")
        self._messages[message.id] = message
        self._created[message.id] = seq

    async def _admit(self, seq: Seq, event: events.PromptAdmitted) -> None:
        try:
            await inbox_table.insert(self._tx, event, admitted_seq=seq)
        except UniqueViolationError as error:
            raise PromptConflictError(event.message_id) from error

    async def _promote(self, seq: Seq, event: events.PromptPromoted) -> None:
        marked = await inbox_table.mark_promoted(self._tx, self._session_id, event.message_id, seq)
        if marked:
            return
        # A log from before admissions were events: promoted as soon as admitted.
        try:
            await inbox_table.insert(self._tx, event, admitted_seq=seq, promoted_seq=seq)
        except UniqueViolationError as error:
            raise PromptConflictError(event.message_id) from error

    async def _write_todos(self, seq: Seq, event: events.TodosUpdated) -> None:
        # A revert may have removed the message; then the update is ignored.
        if await self._message(event.assistant_message_id) is not None:
            await todo_table.insert(self._tx, event, seq=seq)

    async def _close_last_step(self, seq: Seq, event: events.StepStarted) -> None:
        if self._is_step_known:
            newest = None if self._step_id is None else self._messages[self._step_id]
        else:
            row = await message_table.latest_of_type(
                self._tx, self._session_id, "assistant", before=seq
            )
            newest = None if row is None else self._messages.get(row.id) or row.message()
        if isinstance(newest, AssistantMessage) and newest.time.completed is UNSET:
            self._change(projection.close_superseded(newest, event))

    async def _apply_exclusion(self, event: ExclusionEvent) -> None:
        # A revert may have removed the message, and a fork may have left it out.
        message = await self._message(event.message_id)
        if message is not None:
            self._change(omission.after_exclusion(message, event))

    async def _end_shell(self, seq: Seq, event: events.ShellEnded) -> None:
        created = self._created_last(lambda message: _is_shell(message, event.call_id))
        if isinstance(created, ShellMessage):
            self._change(projection.shell_after(created, event))
            return
        before = seq
        while True:
            row = await message_table.latest_of_type(
                self._tx, self._session_id, "shell", before=before
            )
            if row is None:
                return
            message = await self._message(row.id)
            if isinstance(message, ShellMessage) and _is_shell(message, event.call_id):
                self._change(projection.shell_after(message, event))
                return
            before = row.seq

    async def _end_revert(self, event: events.RevertCommitted | events.RevertCleared) -> None:
        if self._ends_epochs:
            await revert_table.clear(self._tx, self._session_id)
        if isinstance(event, events.RevertCommitted):
            await self._revert(event.message_id)

    async def _revert(self, message_id: MessageID) -> None:
        await self.write()
        self._messages.clear()
        self._created.clear()
        self._changed.clear()
        self._is_step_known, self._step_id = False, None
        boundary = await message_table.get(self._tx, self._session_id, message_id)
        if boundary is not None:
            await message_table.delete_after(self._tx, self._session_id, boundary.seq)
            await inbox_table.delete_after(self._tx, self._session_id, boundary.seq)
            await todo_table.delete_without_message(self._tx, self._session_id)
            # Messages after the boundary may have carried context: admit it again in full.
            await self._end_epoch()
            if self._ends_epochs:
                await retry_table.clear(self._tx, self._session_id)
                await attempt_table.release(self._tx, self._session_id)
                await file_change_table.delete_without_message(self._tx, self._session_id)

    async def _delete(self) -> None:
        """Hide the Session at once; its many rows are removed later, in small batches."""
        await self.write()
        self._messages.clear()
        self._created.clear()
        self._changed.clear()
        self._session, self._session_changed = None, False
        self._is_step_known, self._step_id = False, None
        await deletion_table.begin(self._tx, self._session_id)

    async def _leave_location(self) -> None:
        await self._end_epoch()
        if self._ends_epochs:
            await instruction_table.clear(self._tx, self._session_id)

    async def _end_epoch(self) -> None:
        if self._ends_epochs:
            await epoch_table.clear(self._tx, self._session_id)

    async def _message(self, message_id: MessageID) -> SessionMessage | None:
        known = self._messages.get(message_id)
        if known is not None:
            return known
        row = await message_table.get(self._tx, self._session_id, message_id)
        if row is None:
            return None
        message = self._messages[message_id] = row.message()
        return message

    def _created_last(self, wanted: Callable[[SessionMessage], bool]) -> SessionMessage | None:
        """The newest matching message of this batch, which is not in the table yet."""
        created = (self._messages[message_id] for message_id in reversed(self._created))
        return next((message for message in created if wanted(message)), None)

    def _change(self, message: SessionMessage) -> None:
        self._messages[message.id] = message
        self._changed.add(message.id)


def _is_shell(message: SessionMessage, call_id: ToolCallID) -> bool:
    return isinstance(message, ShellMessage) and message.call_id == call_id
