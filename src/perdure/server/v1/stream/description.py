"""What V1 says about a durable event, once the Session is folded by it. Pure."""

from msgspec import UNSET
from msgspec.structs import replace

from perdure.core.session import projection
from perdure.protocol.v1.message import V1Error, V1ErrorData, V1Message, V1MessageInfo
from perdure.protocol.v1.part import AnyV1Part, V1Span, V1Text
from perdure.protocol.v1.session import V1Status
from perdure.schema.ids import MessageID
from perdure.schema.session import event as events
from perdure.schema.session.event import AssistantEvent, SessionEvent
from perdure.schema.session.message import (
    AssistantMessage,
    ReasoningPart,
    ShellMessage,
    TextPart,
    ToolPart,
)
from perdure.schema.session.session import SessionInfo
from perdure.schema.value import State
from perdure.server.v1 import shapes


class FollowedSession(State):
    info: SessionInfo
    seq: int
    parent: str
    """The last message of a user, which the answers belong to."""
    prompt: str
    """The last prompt, which waits or was promoted."""
    answers: dict[MessageID, AssistantMessage]
    shell: ShellMessage | None = None
    """The command of the user that runs, or ran last."""
    unchanged: bool = False
    """Whether it has changed no file, as far as its events say."""


_WITHOUT_CHANGES = (
    events.PromptAdmitted
    | events.PromptPromoted
    | events.StepStarted
    | events.TextStarted
    | events.TextEnded
    | events.ReasoningStarted
    | events.ReasoningEnded
    | events.StepEnded
)
"""A step that changes files has calls of tools too."""


def fold(session: FollowedSession, event: SessionEvent) -> None:
    session.unchanged = session.unchanged and isinstance(event, _WITHOUT_CHANGES)
    session.info = projection.session_after(session.info, event)
    if isinstance(event, events.PromptAdmitted | events.PromptPromoted):
        session.prompt = event.message_id
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


def describe(session: FollowedSession, event: SessionEvent) -> list[tuple[str, object]]:
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
            return [status(info.id, retry)]
        case events.StepStarted() | events.StepEnded() | events.StepFailed():
            return _describe_step(session, event)
        case _ if isinstance(event, AssistantEvent):
            return _describe_part(session, event)
        case _ if isinstance(event, projection.LeavesSession):
            return []
        case _:
            return [_session(info)]


def _describe_shell(
    session: FollowedSession, event: events.ShellStarted | events.ShellEnded
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
    session: FollowedSession, event: events.StepStarted | events.StepEnded | events.StepFailed
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


def _describe_part(session: FollowedSession, event: AssistantEvent) -> list[tuple[str, object]]:
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


def status(session_id: str, status: V1Status) -> tuple[str, object]:
    return "session.status", {"sessionID": session_id, "status": status}
