"""Creates, lists and answers permission requests by Session, and saved approvals by project.

A request waits in the Location where its Session works, in this or another process
(store.tables.pending_table). Requests of all processes are listed; an answer for another process is
stored, and that process finds it. Only creating a request opens a Location: one that is not open
has no request waiting here.

Invariant: a request is shown and settled only under the Session it belongs to, or one above that.
"""

from msgspec import UNSET

from perdure.core import limits
from perdure.location.agents.agents import Agents
from perdure.location.approval.permissions import LocationPermissions
from perdure.location.approval.stores import SavedRules
from perdure.location.registry import LocationRegistry
from perdure.ports import Database, PermissionAsk, PermissionBlockedError
from perdure.runtime.human.pending import PendingView
from perdure.runtime.session.sessions import Sessions
from perdure.runtime.tasks import shielded
from perdure.schema import codec
from perdure.schema.approval.pending import PermissionWord
from perdure.schema.approval.permission import (
    PermissionDecision,
    PermissionInput,
    PermissionRequest,
    SavedRule,
)
from perdure.schema.errors import (
    InvalidRequestError,
    PermissionNotFoundError,
    ServiceUnavailableError,
)
from perdure.schema.ids import PermissionID, ProjectID, SessionID
from perdure.schema.location import LocationRef
from perdure.schema.session.session import SessionInfo
from perdure.store.tables import task_table
from perdure.store.tables.pending_table import PendingRequests


class Permissions:
    def __init__(
        self,
        sessions: Sessions,
        locations: LocationRegistry,
        saved: SavedRules,
        requests: PendingRequests,
        *,
        database: Database,
    ) -> None:
        self._database = database
        self._sessions = sessions
        self._locations = locations
        self._saved = saved
        self._requests = requests
        self._pending = PendingView(
            "permission",
            PermissionRequest,
            here=self._list_here,
            requests=requests,
            database=database,
        )

    async def create(
        self,
        session_id: SessionID,
        given: PermissionInput,
        *,
        id: PermissionID | None = None,
        agent: str | None = None,
    ) -> PermissionDecision:
        """Decide without waiting; a request that a person must decide becomes pending.

        Raises PermissionConflictError when a request with this id is pending already.
        """
        _check_size(given)
        session = await self._load_session(session_id)
        above = await self._database.read(lambda tx: task_table.agents_above(tx, session))
        async with self._locations.hold(session.location, session=session_id) as location:
            ask = _build_ask(given, session, _agent_name(location.agents, session, agent), above)
            try:
                return await location.permissions.ask(ask, request_id=id)
            except PermissionBlockedError as error:
                raise ServiceUnavailableError(str(error), service="permission") from error

    async def list(self, session_id: SessionID) -> tuple[PermissionRequest, ...]:
        """Return the pending requests of a Session and all below it."""
        return await self._pending.list_below(session_id)

    async def get(self, session_id: SessionID, request_id: PermissionID) -> PermissionRequest:
        """Return a pending request. Raises PermissionNotFoundError."""
        for request in await self.list(session_id):
            if request.id == request_id:
                return request
        raise PermissionNotFoundError(request_id)

    async def reply(
        self,
        session_id: SessionID,
        request_id: PermissionID,
        word: PermissionWord,
    ) -> None:
        """Settle a request, and others that the same reply settles."""
        if len((word.message or "").encode()) > limits.PERMISSION_FEEDBACK_BYTES_MAX:
            raise _too_large("message", limits.PERMISSION_FEEDBACK_BYTES_MAX)
        owner = (await self.get(session_id, request_id)).session_id
        # A client that disconnects must not leave a rule saved and the request unanswered.
        await shielded(self._settle(owner, request_id, word))

    async def _settle(
        self, owner: SessionID, request_id: PermissionID, word: PermissionWord
    ) -> None:
        session = await self._load_session(owner)
        # Durable first: the process may die before the call that waits goes on.
        if not await self._requests.answer(request_id, owner, word):
            raise PermissionNotFoundError(request_id)
        waiting = self._find_open(session.location)
        if waiting is not None and waiting.has(request_id, owner):
            await waiting.reply(request_id, word)
            return
        orphan = await self._requests.take_orphan(request_id)
        if orphan is None or not isinstance(orphan.request, PermissionRequest):
            return
        async with self._locations.hold(session.location) as location:
            await location.permissions.restore(orphan.request)
            await location.permissions.reply(request_id, word)

    async def list_everywhere(self) -> tuple[PermissionRequest, ...]:
        """Return the pending requests of all Sessions of all Locations."""
        return await self._pending.list_everywhere(it.ref for it in self._locations.list_open())

    async def pending(self, ref: LocationRef) -> tuple[PermissionRequest, ...]:
        """Return the pending requests of all Sessions of a Location."""
        return await self._pending.list_at(ref)

    async def saved(self, project_id: ProjectID) -> tuple[SavedRule, ...]:
        """Return the saved approvals of a project, oldest first."""
        return await self._saved.list(project_id)

    async def remove_saved(self, rule_id: str) -> None:
        """Remove a saved approval. An unknown id is a no-op."""
        await self._saved.remove(rule_id)

    async def _load_session(self, session_id: SessionID) -> SessionInfo:
        return codec.decode(SessionInfo, await self._sessions.get(session_id))

    def _find_open(self, ref: LocationRef) -> LocationPermissions | None:
        location = self._locations.get_open(ref)
        return None if location is None else location.permissions

    def _list_here(self, ref: LocationRef) -> tuple[PermissionRequest, ...]:
        waiting = self._find_open(ref)
        return () if waiting is None else waiting.list()


def _build_ask(
    given: PermissionInput, session: SessionInfo, agent: str, above: tuple[str, ...]
) -> PermissionAsk:
    return PermissionAsk(
        session_id=session.id,
        agent=agent,
        above=above,
        action=given.action,
        resources=given.resources,
        save=() if given.save is UNSET else given.save,
        metadata=None if given.metadata is UNSET else given.metadata,
        source=None if given.source is UNSET else given.source,
    )


def _agent_name(agents: Agents, session: SessionInfo, asked: str | None) -> str:
    """Return the agent whose rules apply; an unknown one keeps its name and may do nothing."""
    own = None if session.agent is UNSET else session.agent
    wanted = own if asked is None else asked
    agent = agents.select(wanted)
    return wanted or "" if agent is None else agent.id


def _check_size(given: PermissionInput) -> None:
    for items in (given.resources, given.save):
        if items is not UNSET and len(items) > limits.PERMISSION_RESOURCES_MAX:
            raise InvalidRequestError(
                f"At most {limits.PERMISSION_RESOURCES_MAX} resources can be asked for at once",
                kind="Payload",
            )
    if len(codec.encode(given)) > limits.PERMISSION_INPUT_BYTES_MAX:
        raise _too_large("request", limits.PERMISSION_INPUT_BYTES_MAX)


def _too_large(what: str, bytes_max: int) -> InvalidRequestError:
    return InvalidRequestError(
        f"Permission {what} is larger than {bytes_max} bytes", kind="Payload"
    )
