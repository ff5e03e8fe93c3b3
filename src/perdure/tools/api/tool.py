"""A tool that the model may call: its name, description, input, output and implementation.

Input and output are records; their JSON Schemas come from the same types that validate them.
`execute` does the work, `to_model_output` is a pure function to what the model is shown. The model
is told a ToolFailure; every other exception is a defect and propagates.
"""

from collections.abc import Awaitable, Callable
from typing import Generic, Literal, TypeVar

from perdure.ports import PermissionAsk, PermissionBlockedError
from perdure.ports.file_journal import NO_JOURNAL, Journal
from perdure.schema.approval.permission import PermissionSource
from perdure.schema.codec import JsonObject, Record
from perdure.schema.ids import MessageID, SessionID, ToolCallID
from perdure.schema.session.todo import Todos
from perdure.schema.session.tool import TextContent, ToolContent
from perdure.schema.value import Value

InputT = TypeVar("InputT", bound=Record)
OutputT = TypeVar("OutputT", bound=Record)


ToolEffect = Literal["pure", "idempotent", "reconcilable", "once"]
"""What a second execution of the same call would do, if a crash cut the first one. `pure`: it only
reads. `idempotent`: the same as the first alone. `reconcilable`: the file journal tells whether the
first one took effect. `once`: unknown, so it is never executed twice."""


class ToolFailure(Exception):
    """The call failed, for a reason that the model is told and can act on."""


class Progress(Value):
    """Progress of a call, in the form of its result."""

    structured: JsonObject
    content: tuple[ToolContent, ...]


def _ignore(progress: Progress) -> None:
    """The default of `report`."""


async def _refuse(ask: PermissionAsk) -> None:
    """The default of `require`: without a gate nothing is allowed."""
    raise PermissionBlockedError(f"No permission can be asked for here: {ask.action}")


class ToolCallContext(Value, kw_only=True):
    """The context of one call. `agent` is that of the turn that issued the call."""

    session_id: SessionID
    agent: str
    assistant_message_id: MessageID
    call_id: ToolCallID
    above: tuple[str, ...] = ()
    """The agents of the Sessions above this one: see ports.PermissionAsk."""
    report: Callable[[Progress], None] = _ignore
    """Receives what `progress` reports; it neither waits nor fails."""
    journal: Journal = NO_JOURNAL
    """Receives every change of a file, before it is made."""
    require: Callable[[PermissionAsk], Awaitable[None]] = _refuse
    """Asks for a permission, as ports.PermissionGate.require does."""
    reads_documents: bool = False
    """Whether the model can be shown a PDF; see core.request.media_limits."""

    def progress(
        self,
        content: str | tuple[ToolContent, ...] = (),
        *,
        structured: JsonObject | None = None,
    ) -> None:
        """Report progress: each report replaces the one before, and the result the last one."""
        shown = (TextContent(text=content),) if isinstance(content, str) else content
        self.report(Progress({} if structured is None else structured, shown))

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
    structured: Callable[[OutputT], Record | JsonObject] | None = None
    """A smaller structured projection, where the full output would repeat the content."""
    reads: Callable[[OutputT], tuple[str, ...]] | None = None
    """The files whose content the model is shown."""
    output_paths: Callable[[OutputT], tuple[str, ...]] | None = None
    """Managed Tool Output Files that the tool wrote."""
    todos: Callable[[OutputT], Todos] | None = None
    """The new todo list of the Session, recorded with the success."""
    delivers: Callable[[OutputT], MessageID | None] | None = None
    """The prompt of a child Session whose result this is. Delivered with the success."""
    action: str | None = None
    """The permission action that governs it, when it is not its own name."""
    effect: ToolEffect = "once"
    """Whether a call that a crash cut may be executed again."""
    asks_first: bool = False
    """Whether it asks for all permissions before it does anything."""

    @property
    def permission_action(self) -> str:
        return self.action or self.name
