"""What a turn reads before its boundary: the Session, its context epoch and its inbox.

Everything comes from one read of the store, so the boundary is planned on one consistent view.
Committing the boundary checks that nothing of it has changed since (runtime.turn.boundary).
"""

from perdure.core import limits
from perdure.core.context import system_context
from perdure.core.context.system_context import ContextEpoch
from perdure.core.session.drain import Pending
from perdure.ports import Transaction
from perdure.schema.ids import Seq, SessionID
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import Value
from perdure.store.log.event_store import latest_seq
from perdure.store.tables import (
    epoch_table,
    inbox_table,
    instruction_table,
    message_table,
    notice_table,
    session_table,
    task_table,
)
from perdure.store.tables.notice_table import Notice

_PROMOTIONS_MAX = limits.APPEND_EVENTS_MAX - 2
"""One append holds this many facts beside a context update; the rest joins the next boundary."""


class Inbox(Value, kw_only=True):
    """Prompts and notices that wait to be promoted."""

    steers: tuple[AdmittedPrompt, ...] = ()
    queued: AdmittedPrompt | None = None
    """The first of the queue."""
    notices: tuple[Notice, ...] = ()

    @property
    def pending(self) -> Pending:
        return Pending(
            steer=bool(self.steers), queue=self.queued is not None, notice=bool(self.notices)
        )


class TurnInput(Value, kw_only=True):
    """A Session as one read of the store found it."""

    session: SessionInfo
    inbox: Inbox
    epoch: ContextEpoch | None
    compaction: Seq | None
    """Where the latest compaction stands; None when there is none."""
    discovered: tuple[str, ...]
    """Instruction files that tools of this Session came upon."""
    callers: tuple[str, ...]
    """The agents that called this Session as a subagent, the nearest first."""
    read_at: Seq
    """The end of the log at the time of the read."""

    @property
    def admitted(self) -> frozenset[str]:
        """The Context Sources that the current epoch has told of."""
        return frozenset() if self.epoch is None else system_context.keys(self.epoch.snapshot)


async def load(tx: Transaction, session_id: SessionID) -> TurnInput:
    return await _load(tx, session_id, await _inbox(tx, session_id))


async def load_pending(
    tx: Transaction, session_id: SessionID, *, continues: bool
) -> TurnInput | None:
    """As `load`; None when nothing is pending, unless the model waits for tool results."""
    inbox = await _inbox(tx, session_id)
    if not (continues or inbox.steers or inbox.notices or inbox.queued is not None):
        return None
    return await _load(tx, session_id, inbox)


async def _inbox(tx: Transaction, session_id: SessionID) -> Inbox:
    prompts = await inbox_table.list_next(tx, session_id, steers_max=_PROMOTIONS_MAX)
    queued = prompts.pop() if prompts and prompts[-1].delivery == "queue" else None
    notices = await notice_table.list_pending(tx, session_id, limit=_PROMOTIONS_MAX - len(prompts))
    return Inbox(steers=tuple(prompts), queued=queued, notices=tuple(notices))


async def _load(tx: Transaction, session_id: SessionID, inbox: Inbox) -> TurnInput:
    session = await session_table.require(tx, session_id)
    return TurnInput(
        session=session,
        inbox=inbox,
        epoch=await epoch_table.get(tx, session_id),
        compaction=await message_table.latest_compaction(tx, session_id),
        discovered=await instruction_table.list_paths(tx, session_id),
        callers=await task_table.agents_above(tx, session),
        read_at=await latest_seq(tx, session_id),
    )
