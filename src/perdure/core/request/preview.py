"""Builds the preview of the next request and its context sources (schema.session.request_preview).

The preview omits request headers and keeps everything else verbatim.
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
    observation: Observation, snapshot: Snapshot, *, new_baseline: bool
) -> tuple[SourceDetail, ...]:
    """Every source that is observed now or is in the snapshot, by key.

    `new_baseline`: a new baseline is next, which contains every source.
    """
    seen = {observed.key: observed for observed in observation}
    return tuple(
        _gone(key, snapshot[key])
        if key not in seen
        else _detail(seen[key], snapshot.get(key), new_baseline=new_baseline)
        for key in sorted({*seen, *snapshot})
    )


def describe_snapshot(snapshot: Snapshot) -> tuple[SourceDetail, ...]:
    """The sources as the model knows them, when they cannot be observed."""
    return tuple(_unseen(key, snapshot[key]) for key in sorted(snapshot))


def preview_request(built: LLMRequest, *, agent: str) -> ProviderRequest:
    return ProviderRequest(
        agent=agent,
        model=built.model,
        system=built.system,
        messages=tuple(
            _message(message) for segment in built.segments for message in segment.messages
        ),
        tools=tuple(
            view.RequestTool(
                name=tool.name, description=tool.description, input_schema=tool.input_schema
            )
            for tool in built.tools
        ),
        options=dict(built.options),
        tool_choice=built.tool_choice or UNSET,
    )


def _detail(
    observed: Observed, stored: SnapshotEntry | None, *, new_baseline: bool
) -> SourceDetail:
    if not observed.available:
        return _unseen(observed.key, stored)
    return SourceDetail(
        key=observed.key,
        removable=observed.removed is not None,
        available=True,
        changed=new_baseline or _differs(observed, stored),
        value=observed.encoded,
    )


def _differs(observed: Observed, stored: SnapshotEntry | None) -> bool:
    if stored is None:
        return True
    try:
        return observed.update(stored.value) is not None
    except msgspec.ValidationError:
        # A value of another shape cannot be compared and counts as changed.
        return True


def _gone(key: str, stored: SnapshotEntry) -> SourceDetail:
    """The detail of a source that is in the snapshot and no longer observed."""
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
