"""Admission: a prompt becomes durable, once, whoever sends it how often.

A staged revert is committed first, in the same append: a prompt goes on from where the person went
back to. Waking is left to the caller, except that a process which runs the Session already is told.

Invariant: an admission never stands in the log behind a revert that is still staged, and no Session
has more pending prompts than the bound, whoever admits at the same time.
"""

from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.session import inbox
from perdure.ports import Transaction
from perdure.runtime.session import revert as reverts
from perdure.schema.errors import InboxFullError, PromptConflictError
from perdure.schema.ids import MessageID, Seq
from perdure.schema.location import LocationRef
from perdure.schema.session.event import PromptAdmitted
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import RevertState
from perdure.store.log.event_store import Appended, EventStore, SequenceConflictError, Within
from perdure.store.processes import wake_table
from perdure.store.tables import attempt_table, inbox_table, message_table, session_table

Also = Callable[[Transaction], Awaitable[None]]


class _StagedError(Exception):
    """The admission must not stand alone: a revert is staged."""

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
        """The receipt; for a `supplied` id, that of the same prompt if it was admitted before.

        What is `also` done commits together with the admission.
        """
        if supplied and (stored := await self._admitted(asked.id)) is not None:
            return inbox.reconcile(stored, asked)
        try:
            appended = await self._append(
                location, asked, supplied=supplied, resume=resume, also=also
            )
        except PromptConflictError:
            stored = await self._admitted(asked.id)
            if stored is None:
                raise
            return inbox.reconcile(stored, asked)
        return replace(asked, admitted_seq=appended.last_seq)

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
                within = self._alone(asked, supplied=supplied, resume=resume, also=also)
                return await self._store.append(
                    session_id, [event], location=location, within=within
                )
            except _StagedError as staged:
                commit = reverts.committed(session_id, staged.revert, now=asked.time_created)
                at = staged.at
            # When somebody else was quicker, what is staged may be another by now, or gone.
            with suppress(SequenceConflictError):
                return await self._store.append(
                    session_id,
                    [commit, event],
                    location=location,
                    expected=at,
                    within=self._after_commit(asked, resume=resume, also=also),
                )

    def _alone(
        self, asked: AdmittedPrompt, *, supplied: bool, resume: bool, also: Also | None
    ) -> Within:
        together = self._after_commit(asked, resume=resume, also=also)

        async def within(tx: Transaction, seq: Seq) -> None:
            # An id made here is new. A caller's may name a message that never was a prompt.
            if supplied and await message_table.exists(tx, asked.id):
                raise PromptConflictError(asked.id)
            if await session_table.is_reverting(tx, asked.session_id):
                session = await session_table.require(tx, asked.session_id)
                assert session.revert is not UNSET
                raise _StagedError(session.revert, at=Seq(seq - 1))
            await together(tx, seq)

        return within

    def _after_commit(self, asked: AdmittedPrompt, *, resume: bool, also: Also | None) -> Within:
        async def within(tx: Transaction, seq: Seq) -> None:
            # This one is among them: of many that are admitted at once none passes the bound.
            pending_max = limits.INBOX_PENDING_MAX
            if await inbox_table.has_more_pending(tx, asked.session_id, than=pending_max):
                raise InboxFullError(asked.session_id, pending_max)
            if resume:
                await self._tell_runner(tx, asked)
            if also is not None:
                await also(tx)

        return within

    async def _tell_runner(self, tx: Transaction, asked: AdmittedPrompt) -> None:
        # With the admission: this process may die before its own wake finds who runs this.
        await self._store.leases.register_process(tx)
        holder = await self._store.leases.holder(tx, asked.session_id)
        if holder == "other":
            await wake_table.request(tx, asked.session_id)
        await attempt_table.abandon(tx, asked.session_id, orphaned=holder == "dead")

    async def _admitted(self, message_id: MessageID) -> AdmittedPrompt | None:
        return await self._store.database.read(lambda tx: inbox_table.get_admission(tx, message_id))
