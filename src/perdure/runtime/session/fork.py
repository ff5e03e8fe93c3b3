"""Forks a Session: creates one whose log begins with a copy of another one's.

Which events are copied is decided in core.session.fork. The copy is one append, so a fork is whole
or does not exist. It has no Context Epoch: its first boundary admits context anew, in the Location
where the original works now.
"""

from perdure.core import limits
from perdure.core.session import fork, title
from perdure.ports import Clock, IdSource, Transaction
from perdure.runtime.coordination.session_locations import SessionLocations
from perdure.runtime.session.own_fields import OwnFields
from perdure.runtime.session.seed import SessionPlace, build_seed
from perdure.schema.errors import InvalidRequestError, MessageNotFoundError
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.session.event import Forked, SessionCreated, SessionEvent, SessionSeed
from perdure.schema.session.session import SessionInfo
from perdure.store.log.event_store import NO_EVENTS, EventStore, SequenceConflictError, latest_seq
from perdure.store.tables import message_table, session_table


class SessionForks:
    def __init__(
        self, store: EventStore, known: SessionLocations, clock: Clock, ids: IdSource
    ) -> None:
        self._store = store
        self._known = known
        self._clock = clock
        self._ids = ids

    async def fork(
        self,
        session_id: SessionID,
        *,
        id: SessionID | None = None,
        message_id: MessageID | None = None,
        seq: int | None = None,
    ) -> SessionInfo:
        """Copy up to and including a message or a sequence; without either, the whole log.

        An id that exists returns the stored Session, as creating one does.
        """
        source, cut = await self._store.database.read(
            lambda tx: _find_cut(tx, session_id, message_id, seq)
        )
        if id is not None and (stored := await self._load_existing(id)) is not None:
            return stored
        log = await self._load_log(session_id, cut)
        forked = id or self._ids.session()
        now = self._clock.now_millis()
        facts: list[SessionEvent] = [
            SessionCreated(session_id=forked, info=_seed(forked, source, log[0], now=now)),
            *fork.copy_events(log, into=forked),
            Forked(timestamp=now, session_id=forked, source=session_id, seq=cut),
        ]
        try:
            await self._store.append(
                forked, facts, location=source.location, expected=NO_EVENTS, copied=True
            )
            self._known.add(forked, source.location)
        except SequenceConflictError:
            # Another request created it a moment ago.
            pass
        return await self._store.load_session(forked)

    async def _load_existing(self, session_id: SessionID) -> SessionInfo | None:
        return await self._store.database.read(lambda tx: session_table.load(tx, session_id))

    async def _load_log(self, session_id: SessionID, cut: Seq) -> list[SessionEvent]:
        # Two more events are written: the creation, and where the copy comes from.
        if cut + 2 > limits.FORK_EVENTS_MAX:
            raise InvalidRequestError(
                f"The log up to there has more than {limits.FORK_EVENTS_MAX} events",
                kind="Payload",
                field="seq",
            )
        log: list[SessionEvent] = []
        while len(log) <= cut:
            wanted = min(cut + 1 - len(log), limits.REPLAY_ROWS_PER_READ)
            rows = await self._store.read(session_id, after=Seq(len(log) - 1), limit=wanted)
            if not rows:
                # Deleted meanwhile: this raises SessionNotFoundError.
                await self._store.load_session(session_id)
                break
            log += [event for _, _, event in rows]
        return log


async def _find_cut(
    tx: Transaction, session_id: SessionID, message_id: MessageID | None, seq: int | None
) -> tuple[SessionInfo, Seq]:
    """Return the original, and the last sequence that is copied."""
    session = await session_table.require(tx, session_id)
    latest = await latest_seq(tx, session_id)
    if message_id is not None and seq is not None:
        raise InvalidRequestError("Fork from a message or from a sequence", kind="Payload")
    if message_id is not None:
        return session, await _end_of(tx, session_id, message_id, latest)
    if seq is None:
        return session, latest
    if not 0 <= seq <= latest:
        raise InvalidRequestError(
            f"There is no sequence {seq}; the latest is {latest}", kind="Payload", field="seq"
        )
    return session, Seq(seq)


async def _end_of(
    tx: Transaction, session_id: SessionID, message_id: MessageID, latest: Seq
) -> Seq:
    """Return the last sequence before the next message begins."""
    found = await message_table.get(tx, session_id, message_id)
    if found is None:
        raise MessageNotFoundError(session_id, message_id)
    following = await message_table.page(
        tx, session_id, newest_first=False, limit=1, anchor=found.seq
    )
    return Seq(following[0].seq - 1) if following else latest


def _seed(
    forked: SessionID, source: SessionInfo, created: SessionEvent, *, now: int
) -> SessionSeed:
    assert isinstance(created, SessionCreated)
    return build_seed(
        forked,
        SessionPlace.from_session(source),
        title=title.fork_title(source.title),
        now=now,
        # Later switches are in the copy.
        agent=created.info.agent,
        model=created.info.model,
        own=OwnFields(created.info.metadata, created.info.permissions),
    )
