"""Creates, prompts, changes, moves and interrupts Sessions, for network and in-process clients.

Each method is a durable write, usually followed by a wake. runtime.session.queries reads Sessions,
runtime.drain runs them.
"""

from functools import partial
from typing import assert_never

from msgspec import UNSET

from perdure.core.compaction.outcome import (
    INTERRUPTED,
    Compacted,
    CompactionFailed,
    NothingToCompact,
)
from perdure.core.session import inbox, projection
from perdure.core.session import title as titles
from perdure.ports import Clock, IdSource
from perdure.runtime.coordination.coordinator import DrainInterruptedError, RunCoordinator
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.runtime.coordination.session_locations import SessionLocations
from perdure.runtime.session import tree
from perdure.runtime.session.admission import PromptAdmission
from perdure.runtime.session.engine_services import GetEngine
from perdure.runtime.session.own_fields import (
    OwnFields,
    require_metadata,
    require_permissions,
    require_title,
)
from perdure.runtime.session.queries import SessionQueries
from perdure.runtime.session.revert import SessionReverts
from perdure.runtime.session.seed import SessionPlace, build_seed
from perdure.schema import codec
from perdure.schema.approval.permission import SessionRules
from perdure.schema.codec import JsonObject
from perdure.schema.errors import ServiceUnavailableError, SessionBusyError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.models.model import ModelRef
from perdure.schema.session.compaction import CompactionReport
from perdure.schema.session.event import AgentSwitched, ModelSwitched, SessionCreated
from perdure.schema.session.prompt import Delivery, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from perdure.schema.settings.session_mcp import GivenMcpServers
from perdure.schema.value import Value
from perdure.store.log.event_store import NO_EVENTS, EventStore, SequenceConflictError
from perdure.store.log.follow import EventFollowers


class SessionServices(Value, kw_only=True):
    store: EventStore
    tails: EventFollowers
    coordinator: RunCoordinator
    activity: SessionActivity
    engine: GetEngine
    known: SessionLocations
    clock: Clock
    ids: IdSource
    default_location: LocationRef


class Sessions(SessionQueries):
    def __init__(self, services: SessionServices) -> None:
        super().__init__(services.store, services.tails, services.known, services.engine)
        self._coordinator = services.coordinator
        self._clock = services.clock
        self._ids = services.ids
        self._default_location = services.default_location
        self._admissions = PromptAdmission(services.store)
        self._runs = services.activity
        self.revert = SessionReverts(
            services.store,
            services.coordinator,
            self._runs,
            services.clock,
            engine=services.engine,
        )

    # ---- writing --------------------------------------------------------------------------------

    async def create(
        self,
        *,
        id: SessionID | None = None,
        agent: str | None = None,
        model: ModelRef | None = None,
        location: LocationRef | None = None,
        title: str | None = None,
        metadata: JsonObject | None = None,
        permissions: SessionRules | None = None,
        mcp: GivenMcpServers | None = None,
    ) -> SessionInfo:
        """Create a Session; an id that exists returns the stored one and changes nothing."""
        if id is not None and await self.exists(id):
            await self._store.database.check_file()
            return await self._load(id)
        chosen = None if title is None else require_title(title)
        own = OwnFields(require_metadata(metadata), require_permissions(permissions))
        session_id = id or self._ids.session()
        info = await self._engine().locations.info(location or self._default_location)
        now = self._clock.now_millis()
        seed = build_seed(
            session_id,
            SessionPlace.from_location(info),
            title=chosen or titles.placeholder(now),
            now=now,
            agent=UNSET if agent is None else agent,
            model=UNSET if model is None else model,
            own=own,
        )
        event = SessionCreated(session_id=session_id, info=seed)
        if mcp:
            # Stored before the Session exists: its first turn must not run without them.
            self._engine().session_servers.replace(session_id, mcp)
        try:
            await self._store.append(session_id, [event], location=info.ref, expected=NO_EVENTS)
        except SequenceConflictError:
            # Another request created it a moment ago.
            return await self._load(session_id)
        self._known.add(session_id, info.ref)
        return projection.session_created(event)

    async def prompt(
        self,
        session_id: SessionID,
        given: PromptInput,
        *,
        location: LocationRef | None = None,
        id: MessageID | None = None,
        delivery: Delivery = "steer",
        resume: bool = True,
    ) -> AdmittedPrompt:
        """Admit a prompt durably, then wake. A retry with the same id returns the first receipt.

        `location` is where the caller found the Session to work; it is looked up if left out.
        """
        location = location or await self.require_location(session_id)
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

    async def find_receipt(self, session_id: SessionID, id: MessageID) -> AdmittedPrompt | None:
        """The receipt of a prompt of this Session that was admitted with this id."""
        found = await self._admissions.load_admission(id)
        return found if found is not None and found.session_id == session_id else None

    async def switch_agent(self, session_id: SessionID, agent: str) -> None:
        session = await self._load(session_id)
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
        session = await self._load(session_id)
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
        """Move to another directory of the project; with `changes`, take uncommitted ones along.

        Pending prompts stay pending, and run there.
        """
        await self.require_location(session_id)
        if self._runs.runs_here(session_id) or await self._store.database.read(
            lambda tx: self._runs.is_cut(tx, session_id)
        ):
            raise SessionBusyError(session_id)
        work = partial(self._engine().moves.move, destination=destination, changes=changes)
        try:
            refused = await self._coordinator.run_exclusively(session_id, work)
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

    async def list_active(self) -> tuple[SessionID, ...]:
        """The Sessions that any process is running."""
        elsewhere = await self._store.database.read(self._runs.list_elsewhere)
        return tuple(dict.fromkeys((*self._coordinator.active, *elsewhere)))

    async def interrupt(self, session_id: SessionID) -> None:
        """End what runs in the Session and below it, and wait for that. A no-op when idle."""
        await self.require_location(session_id)
        await tree.interrupt_tree(self._store, self._runs, session_id)

    async def compact(self, session_id: SessionID, *, instruction: str = "") -> CompactionReport:
        """Compact once nothing else runs. A failure changes nothing."""
        await self.require_location(session_id)
        compact = partial(self._engine().compactor.compact, instruction=instruction)
        await self._runs.resume_left_over(session_id)
        try:
            outcome = await self._coordinator.run_exclusively(session_id, compact)
        except DrainInterruptedError:
            outcome = CompactionFailed(INTERRUPTED)
        match outcome:
            case CompactionFailed(reason=reason):
                raise ServiceUnavailableError(reason, service="session.compact")
            case NothingToCompact(reason=reason, tokens=tokens):
                return CompactionReport(
                    outcome="nothing", tokens_before=tokens, tokens_after=tokens, reason=reason
                )
            case Compacted():
                return CompactionReport(
                    outcome=outcome.by,
                    tokens_before=outcome.tokens_before,
                    tokens_after=outcome.tokens_after,
                    results=outcome.results or UNSET,
                    reason=outcome.note or UNSET,
                )
            case _:
                assert_never(outcome)

    async def wait(self, session_id: SessionID) -> None:
        """Wait until the Session is idle in every process."""
        await self.require_location(session_id)
        await self._runs.wait_for_client(session_id)

    async def _load(self, session_id: SessionID) -> SessionInfo:
        return codec.decode(SessionInfo, await self.get(session_id))
