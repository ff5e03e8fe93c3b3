"""Translates live events to V1 events.

A Session is read once, with the sequence that it was read at, and then folded by the same functions
as the stored projections. So parts have the ordinals that a list of messages gives them.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Raw, UnsetType

from perdure.core.session import projection
from perdure.protocol.v1.session import V1Status
from perdure.schema import codec, manifest
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.codec import Record
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import SessionID
from perdure.schema.live_event import StatusChanged
from perdure.schema.location import LocationRef
from perdure.schema.session import event as events
from perdure.schema.session.message import (
    AssistantMessage,
    ReasoningPart,
    ShellMessage,
    SyntheticMessage,
    TextPart,
    UserMessage,
)
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.status import SessionBusy, SessionIdle, SessionRetrying
from perdure.schema.value import Value
from perdure.server.v1 import approval, file, shapes
from perdure.server.v1.stream import description
from perdure.server.v1.stream.delta_run import DeltaPart, DeltaParts, DeltaPlace, DeltaRun
from perdure.server.v1.stream.description import FollowedSession
from perdure.server.v1.stream.prompt_origins import PromptOrigins

if TYPE_CHECKING:
    from perdure.runtime.app.runtime import Runtime

_SESSIONS_MAX: Final = 256
_LOADED_MESSAGES: Final = 50
_RENAMED: Final = {
    "question.v2.asked": "question.asked",
    "question.v2.replied": "question.replied",
    "question.v2.rejected": "question.rejected",
    "permission.v2.replied": "permission.replied",
}


class Told(Value):
    """One V1 event, not yet encoded."""

    id: str
    type: str
    properties: object
    location: LocationRef | None


class _Durable(Record):
    seq: int
    version: int


class _Envelope(Record):
    id: str
    type: str
    data: Raw
    location: LocationRef | UnsetType = UNSET
    durable: _Durable | UnsetType = UNSET


class _Named(Record):
    """The Session that a live event is about."""

    session_id: SessionID | UnsetType = UNSET


class Translation:
    def __init__(self, runtime: "Runtime", origins: PromptOrigins) -> None:
        self._runtime = runtime
        self._origins = origins
        self._sessions: OrderedDict[SessionID, FollowedSession] = OrderedDict()
        self._deltas = DeltaParts()

    def forget(self) -> None:
        self._sessions.clear()
        self._deltas.forget()

    async def find_delta_part(self, run: DeltaRun) -> DeltaPart | None:
        """The part that deltas are for; None if it is not known."""
        known = self._deltas.get(run)
        if known is not None:
            return known
        found = run.read_place()
        session = await self._load(found.session_id)
        if session is None:
            return None
        part_id: str | None = None
        if found.text_id is not UNSET or found.reasoning_id is not UNSET:
            part_id = _part_id(session, found)
            if part_id is None:
                return None
        return self._deltas.begin(run, part_id, twice=not self._is_v1_alone(session))

    async def translate(self, data: bytes) -> list[Told]:
        """The V1 events that say the same as this live event. A comment says nothing."""
        if not data.startswith(b"{"):
            return []
        envelope = codec.decode(_Envelope, data)
        where = None if envelope.location is UNSET else envelope.location
        told: list[tuple[str, object]] = []
        if envelope.durable is not UNSET:
            told = await self._durable(envelope, envelope.durable)
        elif envelope.type.endswith(".delta"):
            told = await self._stray_delta(envelope)
        else:
            told = _live(envelope)
            if told and told[-1][0] == "session.idle":
                told += await self._diff(codec.decode(_Named, bytes(envelope.data)))
        return [Told(envelope.id, name, properties, where) for name, properties in told]

    async def _durable(self, envelope: _Envelope, at: _Durable) -> list[tuple[str, object]]:
        stored = f"{envelope.type}.{at.version}"
        event = manifest.decode(stored, bytes(envelope.data))
        if isinstance(event, events.SessionCreated):
            info = projection.session_created(event)
            self._remember(info.id, FollowedSession(info, at.seq, "", "", {}))
            return [("session.created", {"sessionID": info.id, "info": shapes.session(info)})]
        same: list[tuple[str, object]] = []
        if envelope.type.startswith("session.next"):
            same.append((envelope.type, envelope.data))
        session = await self._load(event.session_id)
        if session is None:
            return same
        if at.seq > session.seq:
            session.seq = at.seq
            description.fold(session, event)
        if self._is_v1_alone(session):
            same = []
        if isinstance(event, events.Deleted):
            del self._sessions[event.session_id]
            info = shapes.session(session.info)
            return [*same, ("session.deleted", {"sessionID": info.id, "info": info})]
        return [*same, *description.describe(session, event)]

    async def _stray_delta(self, envelope: _Envelope) -> list[tuple[str, object]]:
        """A delta of a part that is not known, or of a summary, which V1 has no event for."""
        named = codec.decode(_Named, bytes(envelope.data))
        session = None if named.session_id is UNSET else await self._load(named.session_id)
        is_told = session is None or not self._is_v1_alone(session)
        return [(envelope.type, envelope.data)] if is_told else []

    def _is_v1_alone(self, session: FollowedSession) -> bool:
        """Whether a V1 client prompted the Session, or the one whose subagent works in it."""
        if self._origins.came_by_v1(session.info.id, session.prompt):
            return True
        parent = session.info.parent_id
        above = None if parent is UNSET else self._sessions.get(parent)
        return above is not None and self._is_v1_alone(above)

    async def _diff(self, named: _Named) -> list[tuple[str, object]]:
        """What the Session has changed, told when it has come to rest."""
        if named.session_id is UNSET:
            return []
        followed = self._sessions.get(named.session_id)
        if followed is not None and followed.unchanged:
            return [("session.diff", {"sessionID": followed.info.id, "diff": []})]
        try:
            session, found = await self._runtime.session_diffs.diff(named.session_id)
        except SessionNotFoundError:
            return []
        if followed is not None:
            followed.unchanged = not found
        shown = await self._runtime.files.hide_denied(session.location, found)
        told = {"sessionID": session.id, "diff": [file.show_diff(each) for each in shown]}
        return [("session.diff", told)]

    async def _load(self, session_id: SessionID) -> FollowedSession | None:
        found = self._sessions.get(session_id)
        if found is not None:
            self._sessions.move_to_end(session_id)
            return found
        try:
            rows = await self._runtime.snapshots.take(session_id, limit=_LOADED_MESSAGES)
        except SessionNotFoundError:
            return None
        session = FollowedSession(codec.decode(SessionInfo, rows.session), rows.seq, "", "", {})
        for row in rows.messages:
            message = shapes.decode_message(row.data)
            if isinstance(message, UserMessage | SyntheticMessage):
                session.parent = message.id
                if isinstance(message, UserMessage):
                    session.prompt = message.id
            elif isinstance(message, AssistantMessage):
                session.answers[message.id] = message
            elif isinstance(message, ShellMessage):
                session.shell = message
        if rows.inbox:
            session.prompt = rows.inbox[-1].id
        self._remember(session_id, session)
        return session

    def _remember(self, session_id: SessionID, session: FollowedSession) -> None:
        self._sessions[session_id] = session
        if len(self._sessions) > _SESSIONS_MAX:
            self._sessions.popitem(last=False)


def _part_id(session: FollowedSession, place: DeltaPlace) -> str | None:
    answer = session.answers.get(place.assistant_message_id)
    if answer is None:
        return None
    if place.text_id is not UNSET:
        index = shapes.index_of(answer, TextPart, place.text_id)
    else:
        assert place.reasoning_id is not UNSET
        index = shapes.index_of(answer, ReasoningPart, place.reasoning_id)
    return None if index is None else shapes.part_id(answer.id, index + 1)


def _live(envelope: _Envelope) -> list[tuple[str, object]]:
    match envelope.type:
        case "server.connected" | "server.instance.disposed":
            return []
        case "permission.v2.asked":
            asked = codec.decode(PermissionRequest, bytes(envelope.data))
            return [("permission.asked", approval.permission(asked))]
        case "session.status":
            told = codec.decode(StatusChanged, bytes(envelope.data))
            match told.status:
                case SessionBusy():
                    return [description.status(told.session_id, V1Status("busy"))]
                case SessionRetrying(attempt=attempt, message=message, next=due):
                    return [
                        description.status(
                            told.session_id, V1Status("retry", attempt, message, due)
                        )
                    ]
                case SessionIdle():
                    idle = {"sessionID": told.session_id}
                    return [
                        description.status(told.session_id, V1Status("idle")),
                        ("session.idle", idle),
                    ]
        case _:
            return [(_RENAMED.get(envelope.type, envelope.type), envelope.data)]
