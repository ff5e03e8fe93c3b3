"""What an event changes in a transcript, so that a client draws only that again."""

from typing import Literal

from perdure.schema.approval.pending import PendingRequest
from perdure.schema.ids import MessageID
from perdure.schema.session.compaction import CompactionReported, CompactionStarted
from perdure.schema.session.event import Retried
from perdure.schema.session.message import AssistantPart, SessionMessage
from perdure.schema.session.receipt import AdmittedPrompt
from perdure.schema.session.session import SessionInfo
from perdure.schema.session.status import SessionStatus
from perdure.schema.session.todo import Todos
from perdure.schema.value import Value

TextKind = Literal["text", "reasoning", "input"]
"""What a streamed text is: of the answer, of its reasoning, or the input of a tool call."""


class MessageAdded(Value):
    """A message at the end of the history. An answer has no parts yet."""

    message: SessionMessage


class MessageChanged(Value):
    """A message ended, failed, or was marked; its parts have changes of their own."""

    message: SessionMessage


class MessagesRemoved(Value):
    """A revert was committed: these are no longer part of the history."""

    message_ids: tuple[MessageID, ...]


class PartAdded(Value):
    message_id: MessageID
    part: AssistantPart


class TextAppended(Value):
    """A part says more. Fragments that were lost come with the whole text, as one."""

    message_id: MessageID
    kind: TextKind
    part_id: str
    text: str


class PartChanged(Value):
    """A text is complete, or a tool call has another state."""

    message_id: MessageID
    part: AssistantPart
    is_rewritten: bool = False
    """Whether the text differs from what was streamed, so that it must be shown anew."""


class InboxChanged(Value):
    """The prompts that wait, in the order of their promotion."""

    inbox: tuple[AdmittedPrompt, ...]


class SessionChanged(Value):
    session: SessionInfo


class SessionRemoved(Value):
    """The Session was deleted; nothing follows."""


class TodosWritten(Value):
    todos: Todos


class StatusReported(Value):
    status: SessionStatus


class Noticed(Value):
    """Something that no message shows: a request is sent again, a compaction begins or reports."""

    notice: Retried | CompactionStarted | CompactionReported


Change = (
    MessageAdded
    | MessageChanged
    | MessagesRemoved
    | PartAdded
    | TextAppended
    | PartChanged
    | InboxChanged
    | SessionChanged
    | SessionRemoved
    | TodosWritten
    | StatusReported
    | Noticed
)


class RequestOpened(Value):
    """A tool or the model waits for the user."""

    request: PendingRequest


class RequestClosed(Value):
    """The request was answered by some client, or is void."""

    request_id: str


RequestChange = RequestOpened | RequestClosed
