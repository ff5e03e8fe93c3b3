"""A tool: what the model may call, in one executable representation.

Input and output are records; their JSON Schemas come from the same types that validate them.
`execute` performs the work, `to_model_output` says in pure terms what the model is shown. Only
ToolFailure is for the model's eyes; every other exception is a defect and travels on.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, TypeVar

from perdure.schema.codec import Record
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.permission import PermissionSource
from perdure.schema.tool import ToolContent
from perdure.schema.value import Value

InputT = TypeVar("InputT", bound=Record)
OutputT = TypeVar("OutputT", bound=Record)


class ToolFailure(Exception):
    """The call did not work, for a reason that the model can act on."""


class ToolCallContext(Value, kw_only=True):
    """Who calls: the agent is that of the issuing turn, whatever is selected by now."""

    session_id: SessionID
    agent: str
    assistant_message_id: MessageID
    call_id: ToolCallID

    @property
    def source(self) -> PermissionSource:
        return PermissionSource(
            type="tool", message_id=self.assistant_message_id, call_id=self.call_id
        )


class Tool(Value, Generic[InputT, OutputT], kw_only=True):
    name: str
    description: str
    input: type[InputT]
    output: type[OutputT]
    execute: Callable[[InputT, ToolCallContext], Awaitable[OutputT]]
    to_model_output: Callable[[OutputT], tuple[ToolContent, ...]] | None = None
    """None: the model is shown the JSON of the structured output."""
    structured: Callable[[OutputT], Record] | None = None
    """A smaller structured projection, where the full output would repeat the content."""
    reads: Callable[[OutputT], tuple[str, ...]] | None = None
    """The files of which the model has now seen something."""
    action: str | None = None
    """The permission action that governs it, when it is not its own name."""

    @property
    def permission_action(self) -> str:
        return self.action or self.name
