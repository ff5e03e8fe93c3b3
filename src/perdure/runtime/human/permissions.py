"""Permissions as clients see them: requests found by their Session, approvals by their project.

A request waits at the desk of the Location where its Session works, here or in another process
(store.tables.pending_table): both are seen, and a word to the other is left where its process finds
it. Only asking opens a Location: one that is not open has nobody waiting here.

Invariant: a request is seen and settled only under the Session it belongs to, or one above that.
"""

from msgspec import UNSET

from perdure.core import limits
from perdure.location.agents.agents import Agents, Selected
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
    Reply,
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
            "permission", PermissionRequest, here=self._here, requests=requests, database=database
        )

    async def create(
        self,
        session_id: SessionID,
        given: PermissionInput,
        *,
        id: PermissionID | None = None,
        agent: str | None = None,
    ) -> PermissionDecision:
        """Decide without waiting; what a person must decide is left pending.

        Raises PermissionConflictError when a request with this id is pending already.
        """
        _check_size(given)
        session = await self._session(session_id)
        above = await self._database.read(lambda tx: task_table.agents_above(tx, session))
        async with self._locations.hold(session.location) as location:
            ask = _ask(given, session, _agent_name(location.agents, session, agent), above)
            try:
                return await location.permissions.ask(ask, request_id=id)
            except PermissionBlockedError as error:
                raise ServiceUnavailableError(str(error), service="permission") from error

    async def list(self, session_id: SessionID) -> tuple[PermissionRequest, ...]:
        """What is pending for a Session and all below it, oldest first of each."""
        return await self._pending.below(session_id)

    async def get(self, session_id: SessionID, request_id: PermissionID) -> PermissionRequest:
        """A pending request; raises PermissionNotFoundError."""
        for request in await self.list(session_id):
            if request.id == request_id:
                return request
        raise PermissionNotFoundError(request_id)

    async def reply(
        self,
        session_id: SessionID,
        request_id: PermissionID,
        reply: Reply,
        *,
        message: str | None = None,
    ) -> None:
        """Settle a request, and with it those that the same word settles."""
        if len((message or "").encode()) > limits.PERMISSION_FEEDBACK_BYTES_MAX:
            raise _too_large("message", limits.PERMISSION_FEEDBACK_BYTES_MAX)
        owner = (await self.get(session_id, request_id)).session_id
        desk = self._desk((await self._session(owner)).location)
        if desk is not None and desk.has(request_id, owner):
            # A caller that hangs up must not leave a word half said: saved, but nobody let through.
            await shielded(desk.reply(request_id, reply, message=message))
            return
        word = PermissionWord(reply=reply, message=message or UNSET)
        if not await self._requests.answer(request_id, owner, word):
            raise PermissionNotFoundError(request_id)

    async def pending(self, ref: LocationRef) -> tuple[PermissionRequest, ...]:
        """What is pending in a Location, for all its Sessions."""
        return await self._pending.at(ref)

    async def saved(self, project_id: ProjectID) -> tuple[SavedRule, ...]:
        """What was approved for good in a project, in that order."""
        return await self._saved.list(project_id)

    async def remove_saved(self, rule_id: str) -> None:
        """Forget an approval; unknown ids are no error."""
        await self._saved.remove(rule_id)

    async def _session(self, session_id: SessionID) -> SessionInfo:
        return codec.decode(SessionInfo, await self._sessions.get(session_id))

    def _desk(self, ref: LocationRef) -> LocationPermissions | None:
        location = self._locations.get_open(ref)
        return None if location is None else location.permissions

    def _here(self, ref: LocationRef) -> tuple[PermissionRequest, ...]:
        desk = self._desk(ref)
        return () if desk is None else desk.list()


def _ask(
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
    """Whose rules count. One that does not exist keeps its name, and may do nothing."""
    own = None if session.agent is UNSET else session.agent
    wanted = own if asked is None else asked
    selection = agents.select(wanted)
    return selection.agent.id if isinstance(selection, Selected) else wanted or ""


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
