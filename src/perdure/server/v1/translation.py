"""Translates live events to V1 events.

A Session is read once, with the sequence that it was read at, and then folded by the same functions
as the stored projections. So parts have the ordinals that a list of messages gives them.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Final

from msgspec import UNSET, Raw, UnsetType
from msgspec.structs import replace

from perdure.core.session import projection
from perdure.protocol.v1.message import V1Error, V1ErrorData, V1Message, V1MessageInfo
from perdure.protocol.v1.part import AnyV1Part, V1Span, V1Text
from perdure.protocol.v1.session import V1Status
from perdure.schema import codec, manifest
from perdure.schema.approval.permission import PermissionRequest
from perdure.schema.codec import Record
from perdure.schema.errors import SessionNotFoundError
from perdure.schema.ids import MessageID, SessionID
from perdure.schema.live_event import StatusChanged
from perdure.schema.location import LocationRef
from perdure.schema.session import event as events
from perdure.schema.session.event import AssistantEvent, SessionEvent
from perdure.schema.session.message import (
    AssistantMessage,
    ReasoningPart,
    ShellMessage,
    SyntheticMessage,
    TextPart,
    ToolPart,
    UserMessage,
)
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.status import SessionBusy, SessionIdle, SessionRetrying
from perdure.schema.value import State, Value
from perdure.server.v1 import approval, file, shapes
from perdure.server.v1.text_stream import TextPlace, TextStream, TranslatedDelta

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
    """The fields of a live event that are needed to place it."""

    session_id: SessionID | UnsetType = UNSET
    assistant_message_id: MessageID | UnsetType = UNSET
    text_id: str | UnsetType = UNSET
    reasoning_id: str | UnsetType = UNSET
    delta: str | UnsetType = UNSET


class _Session(State):
    info: SessionInfo
    seq: int
    parent: str
    """The last message of a user, which the answers belong to."""
    answers: dict[MessageID, AssistantMessage]
    shell: ShellMessage | None = None
    """The command of the user that runs, or ran last."""


class Translation:
    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._sessions: OrderedDict[SessionID, _Session] = OrderedDict()
        self._text = TextStream()

    def forget(self) -> None:
        self._sessions.clear()
        self._text.forget()

    async def translate_delta(self, data: bytes) -> TranslatedDelta | None:
        """The V1 events of a delta of a text that is known; None for everything else."""
        found = self._text.translate(data)
        if not isinstance(found, TextPlace):
            return found
        session = await self._load(found.session_id)
        answer = None if session is None else session.answers.get(found.message_id)
        index = None if answer is None else shapes.index_of(answer, TextPart, found.text_id)
        if index is None:
            return None
        self._text.begin(data, found, shapes.part_id(found.message_id, index + 1))
        again = self._text.translate(data)
        return again if isinstance(again, TranslatedDelta) else None

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
            told = await self._delta(envelope)
        else:
            told = _live(envelope)
            if told and told[-1][0] == "session.idle":
                told += await self._diff(codec.decode(_Named, bytes(envelope.data)))
        return [Told(envelope.id, name, properties, where) for name, properties in told]

    async def _durable(self, envelope: _Envelope, at: _Durable) -> list[tuple[str, object]]:
        stored = f"{envelope.type}.{at.version}"
        event = manifest.decode(stored, bytes(envelope.data))
        same: list[tuple[str, object]] = []
        if envelope.type.startswith("session.next"):
            same.append((envelope.type, envelope.data))
        if isinstance(event, events.SessionCreated):
            info = projection.session_created(event)
            self._remember(info.id, _Session(info, at.seq, "", {}))
            return [("session.created", {"sessionID": info.id, "info": shapes.session(info)})]
        session = await self._load(event.session_id)
        if session is None:
            return same
        if at.seq > session.seq:
            session.seq = at.seq
            _fold(session, event)
        if isinstance(event, events.Deleted):
            del self._sessions[event.session_id]
            info = shapes.session(session.info)
            return [*same, ("session.deleted", {"sessionID": info.id, "info": info})]
        return [*same, *_describe(session, event)]

    async def _delta(self, envelope: _Envelope) -> list[tuple[str, object]]:
        same: list[tuple[str, object]] = [(envelope.type, envelope.data)]
        named = codec.decode(_Named, bytes(envelope.data))
        text = named.text_id is not UNSET
        part = named.text_id if text else named.reasoning_id
        if named.session_id is UNSET or named.assistant_message_id is UNSET or part is UNSET:
            return same
        session = await self._load(named.session_id)
        answer = None if session is None else session.answers.get(named.assistant_message_id)
        if answer is None:
            return same
        index = shapes.index_of(answer, TextPart if text else ReasoningPart, part)
        if index is None:
            return same
        told = {
            "sessionID": named.session_id,
            "messageID": answer.id,
            "partID": shapes.part_id(answer.id, index + 1),
            "field": "text",
            "delta": named.delta,
        }
        return [*same, ("message.part.delta", told)]

    async def _diff(self, named: _Named) -> list[tuple[str, object]]:
        """What the Session has changed, told when it has come to rest."""
        if named.session_id is UNSET:
            return []
        try:
            session, found = await self._runtime.session_diffs.diff(named.session_id)
        except SessionNotFoundError:
            return []
        shown = await self._runtime.files.hide_denied(session.location, found)
        told = {"sessionID": session.id, "diff": [file.show_diff(each) for each in shown]}
        return [("session.diff", told)]

    async def _load(self, session_id: SessionID) -> _Session | None:
        found = self._sessions.get(session_id)
        if found is not None:
            self._sessions.move_to_end(session_id)
            return found
        try:
            rows = await self._runtime.snapshots.take(session_id, limit=_LOADED_MESSAGES)
        except SessionNotFoundError:
            return None
        session = _Session(codec.decode(SessionInfo, rows.session), rows.seq, "", {})
        for row in rows.messages:
            message = shapes.decode_message(row.data)
            if isinstance(message, UserMessage | SyntheticMessage):
                session.parent = message.id
            elif isinstance(message, AssistantMessage):
                session.answers[message.id] = message
            elif isinstance(message, ShellMessage):
                session.shell = message
        self._remember(session_id, session)
        return session

    def _remember(self, session_id: SessionID, session: _Session) -> None:
        self._sessions[session_id] = session
        if len(self._sessions) > _SESSIONS_MAX:
            self._sessions.popitem(last=False)


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
                    return [_status(told.session_id, V1Status("busy"))]
                case SessionRetrying(attempt=attempt, message=message, next=due):
                    return [_status(told.session_id, V1Status("retry", attempt, message, due))]
                case SessionIdle():
                    idle = {"sessionID": told.session_id}
                    return [_status(told.session_id, V1Status("idle")), ("session.idle", idle)]
        case _:
            return [(_RENAMED.get(envelope.type, envelope.type), envelope.data)]


def _fold(session: _Session, event: SessionEvent) -> None:
    session.info = projection.session_after(session.info, event)
    if isinstance(event, events.PromptPromoted | events.SyntheticAdded):
        session.parent = event.message_id
    elif isinstance(event, events.ShellStarted):
        started = projection.message_created(event)
        assert isinstance(started, ShellMessage)
        session.shell = started
    elif isinstance(event, events.ShellEnded):
        if session.shell is not None and session.shell.call_id == event.call_id:
            session.shell = projection.shell_after(session.shell, event)
    elif isinstance(event, events.StepStarted):
        made = projection.message_created(event)
        assert isinstance(made, AssistantMessage)
        # Only the running answer is needed from here on.
        session.answers = {made.id: made}
    elif isinstance(event, AssistantEvent):
        answer = session.answers.get(event.assistant_message_id)
        if answer is not None:
            session.answers[answer.id] = projection.assistant_after(answer, event)


def _describe(session: _Session, event: SessionEvent) -> list[tuple[str, object]]:
    """The V1 events after a durable event was folded into its Session."""
    info, when = session.info, event.timestamp
    if isinstance(event, events.ShellStarted | events.ShellEnded):
        return _describe_shell(session, event)
    match event:
        case events.PromptAdmitted(message_id=id, prompt=prompt):
            parts = shapes.prompt_parts(info.id, id, prompt)
            told = [_part(part, when) for part in parts]
            return [_message(shapes.user(info, id, when)), *told, _session(info)]
        case events.SyntheticAdded():
            made = projection.message_created(event)
            return [each for m in shapes.messages(info, [made]) for each in _whole(m, when)]
        case events.PromptCancelled(message_id=id):
            return [("message.removed", {"sessionID": info.id, "messageID": id})]
        case events.CompactionEnded() | events.CompactionReported():
            return _describe_compaction(info, event)
        case events.Retried(attempt=attempt, error=error, next=after):
            retry = V1Status("retry", attempt, error.message, when if after is UNSET else after)
            return [_status(info.id, retry)]
        case events.StepStarted() | events.StepEnded() | events.StepFailed():
            return _describe_step(session, event)
        case _ if isinstance(event, AssistantEvent):
            return _describe_part(session, event)
        case _ if isinstance(event, projection.LeavesSession):
            return []
        case _:
            return [_session(info)]


def _describe_shell(
    session: _Session, event: events.ShellStarted | events.ShellEnded
) -> list[tuple[str, object]]:
    if session.shell is None or session.shell.call_id != event.call_id:
        return []
    asked, answer = shapes.shell(session.info, session.shell)
    told = _whole(answer, event.timestamp)
    return (
        told if isinstance(event, events.ShellEnded) else [*_whole(asked, event.timestamp), *told]
    )


def _describe_compaction(
    info: SessionInfo, event: events.CompactionEnded | events.CompactionReported
) -> list[tuple[str, object]]:
    """The end of a compaction, which clients wait for; without a checkpoint, why there is none."""
    ended: tuple[str, object] = ("session.compacted", {"sessionID": info.id})
    if isinstance(event, events.CompactionEnded):
        made = projection.message_created(event)
        shown = shapes.messages(info, [made])
        return [*(each for m in shown for each in _whole(m, event.timestamp)), ended]
    told: list[tuple[str, object]] = []
    if event.note is not UNSET:
        error = V1Error("UnknownError", V1ErrorData(event.note))
        told.append(("session.error", {"sessionID": info.id, "error": error}))
    return told if event.outcome == "failed" else [*told, ended]


def _describe_step(
    session: _Session, event: events.StepStarted | events.StepEnded | events.StepFailed
) -> list[tuple[str, object]]:
    info, when = session.info, event.timestamp
    answer = session.answers.get(event.assistant_message_id)
    if answer is None:
        return []
    told = shapes.assistant(info, answer, session.parent)
    match event:
        case events.StepStarted():
            return [_message(told), _part(shapes.step_start(info.id, answer), when)]
        case events.StepEnded():
            finish = _part(shapes.step_finish(info.id, answer), when)
            return [finish, _message(told), _session(info)]
        case events.StepFailed():
            failure = {"sessionID": info.id, "error": told.error}
            return [_message(told), ("session.error", failure), _session(info)]


def _describe_part(session: _Session, event: AssistantEvent) -> list[tuple[str, object]]:
    answer = session.answers.get(event.assistant_message_id)
    if answer is None:
        return []
    match event:
        case events.TextStarted(text_id=id) | events.TextEnded(text_id=id):
            index = shapes.index_of(answer, TextPart, id)
        case events.ReasoningStarted(reasoning_id=id) | events.ReasoningEnded(reasoning_id=id):
            index = shapes.index_of(answer, ReasoningPart, id)
        case events.ToolInputEnded() | events.StepEnded() | events.StepFailed():
            index = None
        case _:
            index = shapes.index_of(answer, ToolPart, event.call_id)
    if index is None:
        return []
    part = shapes.answer_part(session.info.id, answer, index)
    if isinstance(event, events.TextEnded) and isinstance(part, V1Text):
        # A text is whole before its message: clients print it when its end is told.
        part = replace(part, time=V1Span(answer.time.created, event.timestamp))
    return [_part(part, event.timestamp)]


def _whole(message: V1Message, when: int) -> list[tuple[str, object]]:
    return [_message(message.info), *(_part(part, when) for part in message.parts)]


def _message(info: V1MessageInfo) -> tuple[str, object]:
    return "message.updated", {"sessionID": info.session_id, "info": info}


def _part(part: AnyV1Part, when: int) -> tuple[str, object]:
    told = {"sessionID": part.session_id, "part": part, "time": when}
    return "message.part.updated", told


def _session(info: SessionInfo) -> tuple[str, object]:
    return "session.updated", {"sessionID": info.id, "info": shapes.session(info)}


def _status(session_id: str, status: V1Status) -> tuple[str, object]:
    return "session.status", {"sessionID": session_id, "status": status}
