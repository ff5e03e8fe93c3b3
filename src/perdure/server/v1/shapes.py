"""Pure translation of Sessions and messages to their V1 shapes.

The id of a part is its message and its ordinal, so it is the same in a stream, in a list and after
a restart, and sorts as the parts do.
"""

from collections.abc import Iterable
from typing import Final

import msgspec
from msgspec import UNSET

from perdure.protocol.v1.endpoint import CONTRACT_VERSION
from perdure.protocol.v1.message import (
    V1Assistant,
    V1Error,
    V1ErrorData,
    V1Message,
    V1MessageTime,
    V1ModelChoice,
    V1Path,
    V1User,
)
from perdure.protocol.v1.part import (
    AnyV1Part,
    V1Agent,
    V1Compaction,
    V1Completed,
    V1File,
    V1FileSource,
    V1Reasoning,
    V1Running,
    V1SourceText,
    V1Span,
    V1StepFinish,
    V1StepStart,
    V1Text,
    V1Tool,
)
from perdure.protocol.v1.rule import V1Rule
from perdure.protocol.v1.session import V1Revert, V1Session
from perdure.schema.approval.permission import SessionRule, SessionRules
from perdure.schema.codec import JsonObject
from perdure.schema.models.model import NO_TOKENS
from perdure.schema.session.message import (
    AssistantMessage,
    AssistantPart,
    CompactionMessage,
    ReasoningPart,
    SessionMessage,
    ShellMessage,
    SyntheticMessage,
    TextPart,
    ToolPart,
    UserMessage,
)
from perdure.schema.session.prompt import Prompt
from perdure.schema.session.session import SessionInfo
from perdure.server.v1 import tool_state

_MESSAGES: Final[msgspec.json.Decoder[SessionMessage]] = msgspec.json.Decoder(SessionMessage)
DEFAULT_AGENT: Final = "build"
_SHELL_NOTE: Final = "The following tool was executed by the user"


def decode_message(data: bytes) -> SessionMessage:
    return _MESSAGES.decode(data)


def part_id(message_id: str, ordinal: int) -> str:
    return f"prt_{message_id[4:]}_{ordinal:05d}"


def session(info: SessionInfo) -> V1Session:
    revert = info.revert
    return V1Session(
        id=info.id,
        slug=info.id[-8:],
        project_id=info.project_id,
        directory=info.location.directory,
        path=info.subpath or "",
        title=info.title,
        version=CONTRACT_VERSION,
        cost=info.cost,
        tokens=info.tokens,
        time=info.time,
        workspace_id=info.location.workspace_id,
        parent_id=info.parent_id,
        agent=info.agent,
        model=info.model,
        metadata=info.metadata,
        permission=UNSET
        if info.permissions is UNSET
        else tuple(V1Rule(r.action, r.resource, r.effect) for r in info.permissions),
        revert=UNSET if revert is UNSET else V1Revert(revert.message_id, revert.part_id),
    )


def session_rules(given: Iterable[V1Rule]) -> SessionRules:
    """Rules that a V1 client gives to a Session."""
    return tuple(
        SessionRule(action=rule.permission, resource=rule.pattern, effect=rule.action)
        for rule in given
    )


def user(info: SessionInfo, message_id: str, created: int) -> V1User:
    model = info.model
    choice = V1ModelChoice("", "") if model is UNSET else V1ModelChoice(model.provider_id, model.id)
    return V1User(
        id=message_id,
        session_id=info.id,
        time=V1MessageTime(created),
        agent=info.agent or DEFAULT_AGENT,
        model=choice,
    )


def prompt_parts(session_id: str, message_id: str, given: Prompt | UserMessage) -> list[AnyV1Part]:
    parts: list[AnyV1Part] = [V1Text(part_id(message_id, 0), session_id, message_id, given.text)]
    for file in given.files or ():
        place = file.source
        parts.append(
            V1File(
                id=part_id(message_id, len(parts)),
                session_id=session_id,
                message_id=message_id,
                mime=file.mime,
                url=file.uri,
                filename=file.name,
                source=UNSET
                if place is UNSET
                else V1FileSource(
                    file.name or "", V1SourceText(place.text, place.start, place.end)
                ),
            )
        )
    for agent in given.agents or ():
        parts.append(V1Agent(part_id(message_id, len(parts)), session_id, message_id, agent.name))
    return parts


def assistant(info: SessionInfo, message: AssistantMessage, parent: str) -> V1Assistant:
    directory, error = info.location.directory, UNSET
    if message.error is not UNSET:
        text = message.error.message
        aborted = "interrupted" in text
        name = "MessageAbortedError" if aborted else "UnknownError"
        error = V1Error(name, V1ErrorData(text))
    return V1Assistant(
        id=message.id,
        session_id=info.id,
        time=V1MessageTime(message.time.created, message.time.completed),
        parent_id=parent,
        model_id=message.model.id,
        provider_id=message.model.provider_id,
        mode=message.agent,
        agent=message.agent,
        path=V1Path(directory, directory),
        cost=message.cost or 0.0,
        tokens=message.tokens or NO_TOKENS,
        finish=message.finish,
        error=error,
    )


def step_start(session_id: str, message: AssistantMessage) -> V1StepStart:
    return V1StepStart(part_id(message.id, 0), session_id, message.id)


def step_finish(session_id: str, message: AssistantMessage) -> V1StepFinish:
    ordinal = len(message.content) + 1
    return V1StepFinish(
        id=part_id(message.id, ordinal),
        session_id=session_id,
        message_id=message.id,
        reason=message.finish or "stop",
        cost=message.cost or 0.0,
        tokens=message.tokens or NO_TOKENS,
    )


def answer_part(session_id: str, message: AssistantMessage, index: int) -> AnyV1Part:
    """The part of the answer at `index` of its content."""
    part, own = message.content[index], part_id(message.id, index + 1)
    created, completed = message.time.created, message.time.completed
    match part:
        case TextPart(text=text):
            span = V1Span(created, completed)
            return V1Text(own, session_id, message.id, text, time=span)
        case ReasoningPart(text=text, time=time):
            span = V1Span(created) if time is UNSET else V1Span(time.created, time.completed)
            return V1Reasoning(own, session_id, message.id, text, span)
        case ToolPart():
            state = tool_state.translate(part)
            return V1Tool(own, session_id, message.id, part.id, part.name, state)


def index_of(message: AssistantMessage, kind: type[AssistantPart], id: str) -> int | None:
    found = (i for i, p in enumerate(message.content) if isinstance(p, kind) and p.id == id)
    return next(found, None)


def answer_parts(session_id: str, message: AssistantMessage) -> tuple[AnyV1Part, ...]:
    parts = [answer_part(session_id, message, index) for index in range(len(message.content))]
    end = () if message.finish in (UNSET, "error") else (step_finish(session_id, message),)
    return (step_start(session_id, message), *parts, *end)


def compaction(info: SessionInfo, message: CompactionMessage) -> tuple[V1Message, V1Message]:
    """The request for a summary and the summary, as V1 has a compaction."""
    asked = user(info, message.id, message.time.created)
    mark = V1Compaction(part_id(message.id, 0), info.id, message.id, message.reason == "auto")
    summary_id = f"{message.id}s"
    text = V1Text(part_id(summary_id, 1), info.id, summary_id, message.summary)
    told = V1Assistant(
        id=summary_id,
        session_id=info.id,
        time=V1MessageTime(message.time.created, message.time.created),
        parent_id=message.id,
        model_id=asked.model.model_id,
        provider_id=asked.model.provider_id,
        mode="compaction",
        agent="compaction",
        path=V1Path(info.location.directory, info.location.directory),
        cost=0.0,
        tokens=NO_TOKENS,
        summary=True,
        finish="stop",
    )
    return V1Message(asked, (mark,)), V1Message(told, (text,))


def shell(info: SessionInfo, message: ShellMessage) -> tuple[V1Message, V1Message]:
    """A command of the user, as V1 has it: a note of the user, and an answer that calls bash."""
    asked = user(info, message.id, message.time.created)
    note = V1Text(part_id(message.id, 0), info.id, message.id, _SHELL_NOTE, synthetic=True)
    answer_id, end = f"{message.id}s", message.time.completed
    given: JsonObject = {"command": message.command}
    state: V1Running | V1Completed = V1Running(given, V1Span(message.time.created))
    if end is not UNSET:
        span, told = V1Span(message.time.created, end), {"output": message.output}
        state = V1Completed(given, message.output, "", told, span)
    part = part_id(answer_id, 1)
    tool = V1Tool(part, info.id, answer_id, message.call_id, "bash", state)
    answer = V1Assistant(
        id=answer_id,
        session_id=info.id,
        time=V1MessageTime(message.time.created, end),
        parent_id=message.id,
        model_id=asked.model.model_id,
        provider_id=asked.model.provider_id,
        mode=asked.agent,
        agent=asked.agent,
        path=V1Path(info.location.directory, info.location.directory),
        cost=0.0,
        tokens=NO_TOKENS,
    )
    return V1Message(asked, (note,)), V1Message(answer, (tool,))


def messages(info: SessionInfo, found: Iterable[SessionMessage]) -> list[V1Message]:
    """V1 messages of consecutive messages; changes of context, agent and model have none."""
    shown: list[V1Message] = []
    parent = ""
    for message in found:
        match message:
            case UserMessage(id=id, time=time):
                parent = id
                parts = prompt_parts(info.id, id, message)
                shown.append(V1Message(user(info, id, time.created), tuple(parts)))
            case SyntheticMessage(id=id, time=time, text=text):
                parent = id
                part = V1Text(part_id(id, 0), info.id, id, text, synthetic=True)
                shown.append(V1Message(user(info, id, time.created), (part,)))
            case AssistantMessage():
                told = assistant(info, message, parent)
                shown.append(V1Message(told, answer_parts(info.id, message)))
            case CompactionMessage():
                shown.extend(compaction(info, message))
            case ShellMessage():
                shown.extend(shell(info, message))
            case _:
                pass
    return shown
