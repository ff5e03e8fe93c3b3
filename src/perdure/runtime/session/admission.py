"""Admits a prompt exactly once; a retry with the same id returns the first receipt.

A staged revert is committed first, in the same append: the prompt continues from the message that
the user went back to. The caller wakes the Session; if another process runs it, that process is
asked to wake it in the same transaction.

Invariant: an admission never follows a revert that is still staged, and no Session has more pending
prompts than the limit, however many clients admit at the same time.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.session import inbox
from perdure.ports import Transaction
from perdure.runtime.coordination.run_request import request_run
from perdure.runtime.session import revert as reverts
from perdure.schema.errors import InboxFullError, PromptConflictError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.event import PromptAdmitted
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import RevertState
from perdure.store.log.event_store import Appended, EventStore, SequenceConflictError, Within
from perdure.store.tables import attempt_table, inbox_table, message_table, session_table

Also = Callable[[Transaction], Awaitable[None]]
"""Further statements of the admission's transaction."""


class _StagedError(Exception):
    """A revert is staged, so the append must commit it together with the admission."""

    def __init__(self, revert: RevertState, *, at: Seq) -> None:
        super().__init__(f"a revert to {revert.message_id} is staged")
        self.revert = revert
        self.at = at


class PromptAdmission:
    def __init__(self, store: EventStore) -> None:
        self._store = store

    async def admit(
        self,
        location: LocationRef,
        asked: AdmittedPrompt,
        *,
        supplied: bool,
        resume: bool,
        also: Also | None = None,
    ) -> AdmittedPrompt:
        """Return the receipt; for an id that the caller `supplied`, that of the first admission.

        `resume`: the Session is to run. Raises PromptConflictError and InboxFullError.
        """
        if supplied and (stored := await self.load_admission(asked.id)) is not None:
            return await self._admit_again(stored, asked, resume=resume)
        try:
            appended = await self._append(
                location, asked, supplied=supplied, resume=resume, also=also
            )
        except PromptConflictError:
            stored = await self.load_admission(asked.id)
            if stored is None:
                raise
            return await self._admit_again(stored, asked, resume=resume)
        return replace(asked, admitted_seq=appended.last_seq)

    async def _admit_again(
        self, stored: AdmittedPrompt, asked: AdmittedPrompt, *, resume: bool
    ) -> AdmittedPrompt:
        """A retry. It also asks for a run, if the prompt still waits for one."""
        await self._store.database.check_file()
        receipt = inbox.reconcile(stored, asked)
        if resume:
            await self._request_run_again(asked)
        return receipt

    async def _request_run_again(self, asked: AdmittedPrompt) -> None:
        async def needs_run(tx: Transaction) -> bool:
            return await inbox_table.is_waiting(tx, asked.id)

        async def job(tx: Transaction) -> None:
            if await needs_run(tx):
                await request_run(tx, self._store.leases, asked.session_id)

        if await self._store.database.read(needs_run):
            await self._store.database.write(job)

    async def _append(
        self,
        location: LocationRef,
        asked: AdmittedPrompt,
        *,
        supplied: bool,
        resume: bool,
        also: Also | None,
    ) -> Appended:
        session_id = asked.session_id
        event = PromptAdmitted(
            timestamp=asked.time_created,
            session_id=session_id,
            message_id=asked.id,
            prompt=asked.prompt,
            delivery=asked.delivery,
        )
        while True:
            try:
                checks = self._checks(asked, supplied=supplied, resume=resume, also=also)
                return await self._store.append(
                    session_id, [event], location=location, within=checks
                )
            except _StagedError as staged:
                commit = reverts.build_commit(session_id, staged.revert, now=asked.time_created)
                at = staged.at
            # After a conflict, look again: another revert may be staged by now, or none.
            with suppress(SequenceConflictError):
                checks = self._checks(asked, supplied=False, resume=resume, also=also, commits=True)
                return await self._store.append(
                    session_id, [commit, event], location=location, expected=at, within=checks
                )

    def _checks(
        self,
        asked: AdmittedPrompt,
        *,
        supplied: bool,
        resume: bool,
        also: Also | None,
        commits: bool = False,
    ) -> Within:
        """What the transaction of the append checks and writes besides its events.

        `commits`: the append commits the staged revert too.
        """

        async def within(tx: Transaction, seq: Seq) -> None:
            # An id made here is new. A caller's may name a message that never was a prompt.
            if supplied and await message_table.exists(tx, asked.id):
                raise PromptConflictError(asked.id)
            if not commits:
                await _check_no_revert(tx, asked.session_id, at=Seq(seq - 1))
            # The new prompt is counted: of many admitted at once, none exceeds the limit.
            pending_max = limits.INBOX_PENDING_MAX
            if await inbox_table.has_more_pending(tx, asked.session_id, than=pending_max):
                raise InboxFullError(asked.session_id, pending_max)
            if resume:
                await self._request_run(tx, asked)
            if also is not None:
                await also(tx)

        return within

    async def _request_run(self, tx: Transaction, asked: AdmittedPrompt) -> None:
        holder = await request_run(tx, self._store.leases, asked.session_id)
        await attempt_table.abandon(tx, asked.session_id, orphaned=holder == "dead")

    async def load_admission(self, message_id: MessageID) -> AdmittedPrompt | None:
        return await self._store.database.read(lambda tx: inbox_table.get_admission(tx, message_id))


async def _check_no_revert(tx: Transaction, session_id: SessionID, *, at: Seq) -> None:
    if await session_table.is_reverting(tx, session_id):
        session = await session_table.require(tx, session_id)
        assert session.revert is not UNSET
        raise _StagedError(session.revert, at=at)
