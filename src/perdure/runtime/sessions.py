"""Sessions: what every client can do with one, over the network or in process.

Each method is a durable write followed by an advisory wake, or a read of a projection. Running is
somebody else's business. Reads hand out stored JSON as it is.
"""

from collections.abc import AsyncIterator
from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET, Raw

from perdure import __version__
from perdure.core import inbox, limits, projection, slug, system_context, title
from perdure.core.compaction import CompactionFailed
from perdure.core.history import Cut
from perdure.core.system_context import ContextEpoch
from perdure.ports import Clock, IdSource, Transaction
from perdure.runtime import subtree
from perdure.runtime.admissions import Admissions
from perdure.runtime.elsewhere import Runs
from perdure.runtime.known_sessions import KnownSessions
from perdure.runtime.reverts import Reverts
from perdure.runtime.run_coordinator import DrainInterruptedError, RunCoordinator
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.errors import (
    MessageNotFoundError,
    ServiceUnavailableError,
    SessionBusyError,
    SessionNotFoundError,
)
from perdure.schema.ids import MessageID, Seq, SessionID
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.model import NO_TOKENS, ModelRef
from perdure.schema.prompt import Delivery, PromptInput
from perdure.schema.query import (
    MessageAnchor,
    MessageRow,
    MessageRows,
    Order,
    SessionAnchor,
    SessionQuery,
    SessionRow,
    SessionRows,
)
from perdure.schema.session import SessionInfo, SessionTime
from perdure.schema.session_event import (
    AgentSwitched,
    ModelSwitched,
    SessionCreated,
    SessionSeed,
)
from perdure.schema.session_input import AdmittedPrompt
from perdure.schema.value import Value
from perdure.store import epoch_table, message_table, session_table
from perdure.store.event_store import NO_EVENTS, EventStore, SequenceConflictError
from perdure.store.tail import EventTails

if TYPE_CHECKING:
    from perdure.runtime.compactor import Compactor
    from perdure.runtime.locations import Locations
    from perdure.runtime.moves import Moves
    from perdure.runtime.provider_contexts import ProviderContexts
    from perdure.runtime.reverted_files import RevertedFiles


class SessionServices(Value, kw_only=True):
    store: EventStore
    tails: EventTails
    locations: "Locations"
    coordinator: RunCoordinator
    compactor: "Compactor"
    moves: "Moves"
    reverted_files: "RevertedFiles"
    provider_contexts: "ProviderContexts"
    known: KnownSessions
    clock: Clock
    ids: IdSource
    default_location: LocationRef


class Sessions:
    def __init__(self, services: SessionServices) -> None:
        self._store = services.store
        self._database = services.store.database
        self._tails = services.tails
        self._locations = services.locations
        self._coordinator = services.coordinator
        self._compactor = services.compactor
        self._moves = services.moves
        self._provider_contexts = services.provider_contexts
        self._known = services.known
        self._clock = services.clock
        self._ids = services.ids
        self._default_location = services.default_location
        self._admissions = Admissions(services.store)
        self._runs = Runs(services.store, services.coordinator, services.clock)
        self.revert = Reverts(
            services.store,
            services.coordinator,
            self._runs,
            services.clock,
            files=services.reverted_files,
        )

    # ---- writing --------------------------------------------------------------------------------

    async def create(
        self,
        *,
        id: SessionID | None = None,
        agent: str | None = None,
        model: ModelRef | None = None,
        location: LocationRef | None = None,
    ) -> SessionInfo:
        """A new Session; an id that exists gives the stored one, whatever else is asked."""
        if id is not None and await self.exists(id):
            return await self._require(id)
        session_id = id or self._ids.session()
        info = await self._locations.info(location or self._default_location)
        seed = self._seed(session_id, info, agent, model)
        event = SessionCreated(session_id=session_id, info=seed)
        try:
            await self._store.append(session_id, [event], location=info.ref, expected=NO_EVENTS)
        except SequenceConflictError:
            # Somebody made it a moment ago: theirs is the Session.
            return await self._require(session_id)
        self._known.add(session_id, info.ref)
        return projection.session_created(event)

    async def prompt(
        self,
        session_id: SessionID,
        given: PromptInput,
        *,
        id: MessageID | None = None,
        delivery: Delivery = "steer",
        resume: bool = True,
    ) -> AdmittedPrompt:
        """Admit durably, then wake. The same prompt with the same id is the same admission."""
        location = await self._location(session_id)
        asked = AdmittedPrompt(
            admitted_seq=NO_EVENTS,
            id=id or self._ids.message(),
            session_id=session_id,
            prompt=inbox.admit(given),
            delivery=delivery,
            time_created=self._clock.now_millis(),
        )
        receipt = await self._admissions.admit(
            location, asked, supplied=id is not None, resume=resume
        )
        if resume:
            self._coordinator.wake(session_id)
        return receipt

    async def switch_agent(self, session_id: SessionID, agent: str) -> None:
        session = await self._require(session_id)
        if session.agent == agent:
            return
        event = AgentSwitched(
            timestamp=self._clock.now_millis(),
            session_id=session_id,
            message_id=self._ids.message(),
            agent=agent,
        )
        await self._store.append(session_id, [event], location=session.location)

    async def switch_model(self, session_id: SessionID, model: ModelRef) -> None:
        session = await self._require(session_id)
        if session.model is not UNSET and session.model.same_selection(model):
            return
        event = ModelSwitched(
            timestamp=self._clock.now_millis(),
            session_id=session_id,
            message_id=self._ids.message(),
            model=model,
        )
        await self._store.append(session_id, [event], location=session.location)

    async def move(
        self, session_id: SessionID, destination: LocationRef, *, changes: bool = False
    ) -> None:
        """Work in another directory of the project; `changes`: take uncommitted ones along.

        What is pending stays pending, and runs there.
        """
        await self._location(session_id)
        if session_id in self._coordinator.active:
            raise SessionBusyError(session_id)
        work = partial(self._moves.move, destination=destination, changes=changes)
        try:
            refused = await self._coordinator.exclusive(session_id, work)
        except DrainInterruptedError as error:
            raise ServiceUnavailableError(
                "The move was interrupted; where the Session is now says whether it was made",
                service="session.move",
            ) from error
        if refused is not None:
            raise refused

    # ---- running --------------------------------------------------------------------------------

    def active(self) -> tuple[SessionID, ...]:
        """The Sessions that this process is running."""
        return self._coordinator.active

    async def interrupt(self, session_id: SessionID) -> None:
        """End what runs, with all below it, and wait for that; nothing to do when idle."""
        await self._location(session_id)
        await subtree.interrupt(self._store, self._runs, session_id)

    async def compact(self, session_id: SessionID, *, instruction: str = "") -> None:
        """Condense what the model is shown, once nothing else runs; what fails changes nothing."""
        await self._location(session_id)
        compact = partial(self._compactor.compact, instruction=instruction)
        try:
            outcome = await self._coordinator.exclusive(session_id, compact)
        except DrainInterruptedError:
            outcome = CompactionFailed("Compaction was interrupted")
        if isinstance(outcome, CompactionFailed):
            raise ServiceUnavailableError(outcome.reason, service="session.compact")

    async def wait(self, session_id: SessionID) -> None:
        """Wait until nothing runs for this Session, in whichever process."""
        await self._location(session_id)
        await self._runs.idle(session_id)

    # ---- reading --------------------------------------------------------------------------------

    async def exists(self, session_id: SessionID) -> bool:
        if self._known.location(session_id) is not None:
            return True
        stored = await self._database.read(lambda tx: session_table.load(tx, session_id))
        # It may have been moved, and heard of, while we read where it was.
        if stored is not None and self._known.location(session_id) is None:
            self._known.add(session_id, stored.location)
        return stored is not None

    async def get(self, session_id: SessionID) -> bytes:
        found = await self._database.read(lambda tx: session_table.data(tx, session_id))
        if found is None:
            raise SessionNotFoundError(session_id)
        return found

    async def list(
        self, query: SessionQuery, *, limit: int, anchor: SessionAnchor | None
    ) -> SessionRows:
        backwards = anchor is not None and anchor.direction == "previous"
        rows = await self._database.read(
            lambda tx: session_table.page(
                tx,
                session_table.filter_of(query),
                newest_first=(query.order == "desc") != backwards,
                limit=limit + 1,
                anchor=None if anchor is None else (anchor.time, anchor.id),
            )
        )
        more = len(rows) > limit
        page = rows[:limit]
        if backwards:
            page.reverse()
        return SessionRows(
            rows=tuple(
                SessionRow(data=row.data, id=row.id, time_created=row.time_created) for row in page
            ),
            has_previous=more if backwards else anchor is not None,
            has_next=True if backwards else more,
        )

    async def messages(
        self,
        session_id: SessionID,
        *,
        limit: int,
        order: Order,
        anchor: MessageAnchor | None,
    ) -> MessageRows:
        backwards = anchor is not None and anchor.direction == "previous"

        async def job(tx: Transaction) -> list[message_table.MessageRow]:
            await _known(tx, session_id)
            return await message_table.page(
                tx,
                session_id,
                newest_first=(order == "desc") != backwards,
                limit=limit + 1,
                anchor=None if anchor is None else Seq(anchor.seq),
            )

        rows = await self._database.read(job)
        more = len(rows) > limit
        page = rows[:limit]
        if backwards:
            page.reverse()
        return MessageRows(
            rows=tuple(MessageRow(data=row.data, id=row.id, seq=row.seq) for row in page),
            has_previous=more if backwards else anchor is not None,
            has_next=True if backwards else more,
        )

    async def message(self, session_id: SessionID, message_id: MessageID) -> bytes:
        async def job(tx: Transaction) -> message_table.MessageRow | None:
            await _known(tx, session_id)
            return await message_table.get(tx, session_id, message_id)

        row = await self._database.read(job)
        if row is None:
            raise MessageNotFoundError(session_id, message_id)
        return row.data

    async def context(self, session_id: SessionID) -> tuple[bytes, ...]:
        """Session History as messages: what the model is shown, without the baseline."""
        _, messages = await self._shown(session_id)
        return messages

    async def provider_context(self, session_id: SessionID) -> bytes:
        """The JSON of schema.provider_context.ProviderContext. Looking changes nothing."""
        epoch, messages = await self._shown(session_id)
        told: JsonObject = {"sources": [], "messages": [Raw(data) for data in messages]}
        if epoch is not None:
            told["sources"] = sorted(system_context.decode_snapshot(epoch.snapshot))
            told["baseline"] = epoch.baseline
            told["baselineSeq"] = epoch.baseline_seq
        return codec.encode(told | await self._provider_contexts.outlook(session_id, epoch))

    async def _shown(self, session_id: SessionID) -> tuple[ContextEpoch | None, tuple[bytes, ...]]:
        """The Context Epoch, and the messages of Session History."""

        async def job(tx: Transaction) -> tuple[ContextEpoch | None, tuple[bytes, ...]]:
            await _known(tx, session_id)
            epoch = await epoch_table.get(tx, session_id)
            compaction = await message_table.latest_compaction(tx, session_id)
            cut = Cut(compaction, None if epoch is None else epoch.baseline_seq)
            rows = await message_table.since(tx, session_id, NO_EVENTS)
            shown = (row.data for row in rows if cut.shows(seq=row.seq, type=row.type))
            return epoch, tuple(shown)

        return await self._database.read(job)

    async def history(
        self, session_id: SessionID, *, after: int, limit: int
    ) -> tuple[tuple[bytes, ...], bool]:
        """Public durable events after a sequence, and whether there are more."""
        assert 0 < limit <= limits.HISTORY_ITEMS_MAX
        await self._location(session_id)
        # Sequence 0 made the Session and is not public.
        start = Seq(max(after, 0))
        rows, damaged = await self._store.read_readable(session_id, after=start, limit=limit + 1)
        # Whoever asks for what comes after the last one is told why there is no more.
        more = damaged is not None or len(rows) > limit
        return tuple(wire for _, wire in rows[:limit]), more

    async def events(self, session_id: SessionID, *, after: int) -> AsyncIterator[bytes]:
        """Replay after a sequence, then follow. Each item is one or more complete frames."""
        await self._location(session_id)
        async for frames in self._tails.follow(session_id, after=Seq(after)):
            yield frames

    async def _location(self, session_id: SessionID) -> LocationRef:
        """Where a Session works; raises when there is no such Session."""
        if not await self.exists(session_id):
            raise SessionNotFoundError(session_id)
        location = self._known.location(session_id)
        assert location is not None
        return location

    async def _require(self, session_id: SessionID) -> SessionInfo:
        return codec.decode(SessionInfo, await self.get(session_id))

    def _seed(
        self,
        session_id: SessionID,
        location: LocationInfo,
        agent: str | None,
        model: ModelRef | None,
    ) -> SessionSeed:
        now = self._clock.now_millis()
        return SessionSeed(
            id=session_id,
            slug=slug.of(session_id),
            project_id=location.project.id,
            workspace_id=location.workspace_id,
            directory=location.directory,
            path=location.subpath,
            title=title.placeholder(now),
            agent=UNSET if agent is None else agent,
            model=UNSET if model is None else model,
            version=__version__,
            cost=0,
            tokens=NO_TOKENS,
            time=SessionTime(created=now, updated=now),
        )


async def _known(tx: Transaction, session_id: SessionID) -> None:
    if await session_table.data(tx, session_id) is None:
        raise SessionNotFoundError(session_id)
