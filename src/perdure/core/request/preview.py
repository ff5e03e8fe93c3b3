"""What would be told and sent next, in a form to look at (schema.session.request_preview). Pure.

The request loses its headers here and keeps everything else word for word.
"""

from typing import assert_never

import msgspec
from msgspec import UNSET, UnsetType

from perdure.core.context.system_context import Observation, Observed, Snapshot, SnapshotEntry
from perdure.llm.message import (
    LLMMessage,
    MediaPart,
    Part,
    ReasoningPart,
    TextPart,
    ToolCallPart,
    ToolResultPart,
)
from perdure.llm.request import LLMRequest
from perdure.schema.session import request_preview as view
from perdure.schema.session.request_preview import ProviderRequest, SourceDetail
from perdure.schema.session.tool import ProviderMetadata


def describe_sources(
    observation: Observation, snapshot: Snapshot, *, all_told: bool
) -> tuple[SourceDetail, ...]:
    """Every source that is seen now or was told before, by key.

    `all_told`: a new baseline is next, which tells of everything there is.
    """
    seen = {observed.key: observed for observed in observation}
    return tuple(
        _gone(key, snapshot[key])
        if key not in seen
        else _detail(seen[key], snapshot.get(key), all_told=all_told)
        for key in sorted({*seen, *snapshot})
    )


def describe_snapshot(snapshot: Snapshot) -> tuple[SourceDetail, ...]:
    """The sources as the model knows them, where nobody can look."""
    return tuple(_unseen(key, snapshot[key]) for key in sorted(snapshot))


def preview_request(built: LLMRequest, *, agent: str) -> ProviderRequest:
    return ProviderRequest(
        agent=agent,
        model=built.model,
        system=built.system,
        messages=tuple(_message(message) for run in built.runs for message in run.messages),
        tools=tuple(
            view.RequestTool(
                name=tool.name, description=tool.description, input_schema=tool.input_schema
            )
            for tool in built.tools
        ),
        options=dict(built.options),
        tool_choice=built.tool_choice or UNSET,
    )


def _detail(observed: Observed, stored: SnapshotEntry | None, *, all_told: bool) -> SourceDetail:
    if not observed.available:
        return _unseen(observed.key, stored)
    return SourceDetail(
        key=observed.key,
        removable=observed.removed is not None,
        available=True,
        changed=all_told or _differs(observed, stored),
        value=observed.encoded,
    )


def _differs(observed: Observed, stored: SnapshotEntry | None) -> bool:
    if stored is None:
        return True
    try:
        return observed.update(stored.value) is not None
    except msgspec.ValidationError:
        # Of another shape: it cannot be compared, and is told anew.
        return True


def _gone(key: str, stored: SnapshotEntry) -> SourceDetail:
    """Was told, and is not there any more."""
    return SourceDetail(
        key=key,
        removable=stored.removed is not UNSET,
        available=True,
        changed=True,
        value=UNSET,
    )


def _unseen(key: str, stored: SnapshotEntry | None) -> SourceDetail:
    return SourceDetail(
        key=key,
        removable=stored is not None and stored.removed is not UNSET,
        available=False,
        changed=False,
        value=UNSET if stored is None else stored.value,
    )


def _message(message: LLMMessage) -> view.RequestMessage:
    return view.RequestMessage(role=message.role, content=tuple(map(_part, message.content)))


def _part(part: Part) -> view.RequestPart:
    match part:
        case TextPart(text=text, metadata=metadata):
            return view.RequestText(text=text, metadata=_given(metadata))
        case MediaPart(media_type=media_type, data=data, filename=filename):
            return view.RequestMedia(media_type=media_type, data=data, filename=filename or UNSET)
        case ReasoningPart(text=text, metadata=metadata):
            return view.RequestReasoning(text=text, metadata=_given(metadata))
        case ToolCallPart():
            return view.RequestToolCall(
                id=part.id,
                name=part.name,
                input=part.input,
                provider_executed=part.provider_executed,
                metadata=_given(part.metadata),
            )
        case ToolResultPart():
            return view.RequestToolResult(
                id=part.id,
                name=part.name,
                result_type=part.result.type,
                result=part.result.value,
                provider_executed=part.provider_executed,
                metadata=_given(part.metadata),
            )
        case _:
            assert_never(part)


def _given(metadata: ProviderMetadata | None) -> ProviderMetadata | UnsetType:
    return UNSET if metadata is None else metadata
