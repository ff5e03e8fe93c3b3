"""Sessions: what every client can do with one, over the network or in process.

Each method here is a durable write followed by an advisory wake, or a word to whoever runs it;
those that read stand in `session_reads`. Running is somebody else's business.
"""

from functools import partial
from typing import TYPE_CHECKING

from msgspec import UNSET

from perdure import __version__
from perdure.core.compaction.plan import CompactionFailed
from perdure.core.session import inbox, projection, slug, title
from perdure.ports import Clock, IdSource
from perdure.runtime.coordination.coordinator import DrainInterruptedError, RunCoordinator
from perdure.runtime.coordination.session_activity import SessionActivity
from perdure.runtime.coordination.session_locations import SessionLocations
from perdure.runtime.session import tree
from perdure.runtime.session.admission import PromptAdmission
from perdure.runtime.session.queries import SessionQueries
from perdure.runtime.session.revert import SessionReverts
from perdure.schema import codec
from perdure.schema.errors import ServiceUnavailableError, SessionBusyError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.location import LocationInfo, LocationRef
from perdure.schema.models.model import NO_TOKENS, ModelRef
from perdure.schema.session.event import AgentSwitched, ModelSwitched, SessionCreated, SessionSeed
from perdure.schema.session.prompt import Delivery, PromptInput
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo, SessionTime
from perdure.schema.value import Value
from perdure.store.log.event_store import NO_EVENTS, EventStore, SequenceConflictError
from perdure.store.log.follow import EventFollowers

if TYPE_CHECKING:
    from perdure.runtime.compaction.compactor import Compactor
    from perdure.runtime.drain.request_preview import RequestPreviews
    from perdure.runtime.files.revert import FileReverts
    from perdure.runtime.locations.api import Locations
    from perdure.runtime.session.move import SessionMoves


class SessionServices(Value, kw_only=True):
    store: EventStore
    tails: EventFollowers
    locations: "Locations"
    coordinator: RunCoordinator
    compactor: "Compactor"
    moves: "SessionMoves"
    reverted_files: "FileReverts"
    provider_contexts: "RequestPreviews"
    known: SessionLocations
    clock: Clock
    ids: IdSource
    default_location: LocationRef


class Sessions(SessionQueries):
    def __init__(self, services: SessionServices) -> None:
        super().__init__(services.store, services.tails, services.known, services.provider_contexts)
        self._locations = services.locations
        self._coordinator = services.coordinator
        self._compactor = services.compactor
        self._moves = services.moves
        self._clock = services.clock
        self._ids = services.ids
        self._default_location = services.default_location
        self._admissions = PromptAdmission(services.store)
        self._runs = SessionActivity(services.store, services.coordinator, services.clock)
        self.revert = SessionReverts(
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
            return await self._info(id)
        session_id = id or self._ids.session()
        info = await self._locations.info(location or self._default_location)
        seed = self._seed(session_id, info, agent, model)
        event = SessionCreated(session_id=session_id, info=seed)
        try:
            await self._store.append(session_id, [event], location=info.ref, expected=NO_EVENTS)
        except SequenceConflictError:
            # Somebody made it a moment ago: theirs is the Session.
            return await self._info(session_id)
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
        location = await self.where(session_id)
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
        session = await self._info(session_id)
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
        session = await self._info(session_id)
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
        await self.where(session_id)
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
        await self.where(session_id)
        await tree.interrupt(self._store, self._runs, session_id)

    async def compact(self, session_id: SessionID, *, instruction: str = "") -> None:
        """Condense what the model is shown, once nothing else runs; what fails changes nothing."""
        await self.where(session_id)
        compact = partial(self._compactor.compact, instruction=instruction)
        try:
            outcome = await self._coordinator.exclusive(session_id, compact)
        except DrainInterruptedError:
            outcome = CompactionFailed("Compaction was interrupted")
        if isinstance(outcome, CompactionFailed):
            raise ServiceUnavailableError(outcome.reason, service="session.compact")

    async def wait(self, session_id: SessionID) -> None:
        """Wait until nothing runs for this Session, in whichever process."""
        await self.where(session_id)
        await self._runs.idle(session_id)

    async def _info(self, session_id: SessionID) -> SessionInfo:
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
            slug=slug.make_slug(session_id),
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
