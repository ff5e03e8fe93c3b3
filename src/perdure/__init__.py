"""Perdure: a durable home for coding-agent conversations.

`perdure.open` runs the whole runtime in this program, `perdure.connect` speaks to a server, with
the same methods. `open_blocking` and `connect_blocking` are for programs without an event loop.
`perdure.tool` makes a tool of a function, `perdure.events` holds the kinds of events, and
`perdure.testing` is for tests of programs that use these.

Each name is imported when it is first used: `import perdure` loads no other module.
"""

TYPE_CHECKING = False  # Type checkers take it for True. `typing` would be the only import here.
if TYPE_CHECKING:
    from perdure import events, testing
    from perdure.client.blocking_client import BlockingClient, connect_blocking
    from perdure.client.client import Client, connect, resume_events
    from perdure.client.conversation.blocking_session import BlockingAnswer, BlockingSession
    from perdure.client.conversation.requests import PermissionHandler, QuestionHandler, Refusal
    from perdure.client.conversation.session import Answer, AnswerError, Session
    from perdure.client.errors import ClientError
    from perdure.client.pages import History
    from perdure.client.reconnect import Reconnected
    from perdure.client.typed_events import DurableEvent, DurablePlace, LiveEvent, UnknownFact
    from perdure.client.wire import CallOptions
    from perdure.embedded.blocking_host import BlockingHost
    from perdure.embedded.blocking_host import open_blocking_host as open_blocking
    from perdure.embedded.host import Host
    from perdure.embedded.host import open_host as open
    from perdure.location.context.registry import ContextText, Subject
    from perdure.runtime.plugins.plugins import Plugin, PluginError, PluginHost
    from perdure.schema.approval.permission import PermissionRequest
    from perdure.schema.approval.permission import Reply as PermissionReply
    from perdure.schema.approval.question import QuestionRequest
    from perdure.schema.errors import (
        AttemptNotFoundError,
        CredentialNotFoundError,
        DamagedRowError,
        DeclaredError,
        ForbiddenError,
        InboxFullError,
        IntegrationNotFoundError,
        InvalidCursorError,
        InvalidRequestError,
        JobNotFoundError,
        McpServerNotFoundError,
        MessageNotFoundError,
        MethodNotAllowedError,
        MoveConflictError,
        NotFoundError,
        NothingToDecideError,
        PayloadTooLargeError,
        PerdureError,
        PermissionConflictError,
        PermissionNotFoundError,
        PromptConflictError,
        PromptSettledError,
        ProviderNotFoundError,
        PtyNotFoundError,
        QuestionNotFoundError,
        RevertConflictError,
        ServiceUnavailableError,
        SessionBusyError,
        SessionNotFoundError,
        StorageError,
        UnauthorizedError,
        UnknownError,
        UnsupportedMediaTypeError,
    )
    from perdure.schema.ids import (
        EventID,
        JobID,
        MessageID,
        PermissionID,
        ProjectID,
        PtyID,
        QuestionID,
        SessionID,
        ToolCallID,
        WorkspaceID,
    )
    from perdure.schema.location import LocationInfo, LocationRef
    from perdure.schema.models.model import ModelInfo, ModelRef, ProviderInfo, TokenUsage
    from perdure.schema.page import Page
    from perdure.schema.session.event import SessionEvent
    from perdure.schema.session.message import (
        AgentSwitchedMessage,
        AssistantMessage,
        AssistantPart,
        CompactionMessage,
        ModelSwitchedMessage,
        ReasoningPart,
        SessionMessage,
        ShellMessage,
        SyntheticMessage,
        SystemMessage,
        TextPart,
        ToolPart,
        UserMessage,
    )
    from perdure.schema.session.prompt import FileInput, PromptInput
    from perdure.schema.session.receipt import AdmittedPrompt
    from perdure.schema.session.session import SessionInfo
    from perdure.schema.session.tool import (
        CompletedState,
        ErrorState,
        PendingState,
        RunningState,
        ToolState,
    )
    from perdure.schema.settings.agent import AgentInfo
    from perdure.schema.settings.session_mcp import GivenMcpServer
    from perdure.tools.api.function_tool import tool
    from perdure.tools.api.registry import ToolRegistrationError
    from perdure.tools.api.schema_tool import SchemaTool, SchemaToolResult
    from perdure.tools.api.tool import Tool, ToolCallContext, ToolFailure
    from perdure.version import __version__

__all__ = [
    "AdmittedPrompt",
    "AgentInfo",
    "AgentSwitchedMessage",
    "Answer",
    "AnswerError",
    "AssistantMessage",
    "AssistantPart",
    "AttemptNotFoundError",
    "BlockingAnswer",
    "BlockingClient",
    "BlockingHost",
    "BlockingSession",
    "CallOptions",
    "Client",
    "ClientError",
    "CompactionMessage",
    "CompletedState",
    "ContextText",
    "CredentialNotFoundError",
    "DamagedRowError",
    "DeclaredError",
    "DurableEvent",
    "DurablePlace",
    "ErrorState",
    "EventID",
    "FileInput",
    "ForbiddenError",
    "GivenMcpServer",
    "History",
    "Host",
    "InboxFullError",
    "IntegrationNotFoundError",
    "InvalidCursorError",
    "InvalidRequestError",
    "JobID",
    "JobNotFoundError",
    "LiveEvent",
    "LocationInfo",
    "LocationRef",
    "McpServerNotFoundError",
    "MessageID",
    "MessageNotFoundError",
    "MethodNotAllowedError",
    "ModelInfo",
    "ModelRef",
    "ModelSwitchedMessage",
    "MoveConflictError",
    "NotFoundError",
    "NothingToDecideError",
    "Page",
    "PayloadTooLargeError",
    "PendingState",
    "PerdureError",
    "PermissionConflictError",
    "PermissionHandler",
    "PermissionID",
    "PermissionNotFoundError",
    "PermissionReply",
    "PermissionRequest",
    "Plugin",
    "PluginError",
    "PluginHost",
    "ProjectID",
    "PromptConflictError",
    "PromptInput",
    "PromptSettledError",
    "ProviderInfo",
    "ProviderNotFoundError",
    "PtyID",
    "PtyNotFoundError",
    "QuestionHandler",
    "QuestionID",
    "QuestionNotFoundError",
    "QuestionRequest",
    "ReasoningPart",
    "Reconnected",
    "Refusal",
    "RevertConflictError",
    "RunningState",
    "SchemaTool",
    "SchemaToolResult",
    "ServiceUnavailableError",
    "Session",
    "SessionBusyError",
    "SessionEvent",
    "SessionID",
    "SessionInfo",
    "SessionMessage",
    "SessionNotFoundError",
    "ShellMessage",
    "StorageError",
    "Subject",
    "SyntheticMessage",
    "SystemMessage",
    "TextPart",
    "TokenUsage",
    "Tool",
    "ToolCallContext",
    "ToolCallID",
    "ToolFailure",
    "ToolPart",
    "ToolRegistrationError",
    "ToolState",
    "UnauthorizedError",
    "UnknownError",
    "UnknownFact",
    "UnsupportedMediaTypeError",
    "UserMessage",
    "WorkspaceID",
    "__version__",
    "connect",
    "connect_blocking",
    "events",
    "open",
    "open_blocking",
    "resume_events",
    "testing",
    "tool",
]

_MODULES = ("events", "testing")
_RENAMED = {
    "open": ("perdure.embedded.host", "open_host"),
    "open_blocking": ("perdure.embedded.blocking_host", "open_blocking_host"),
    "PermissionReply": ("perdure.schema.approval.permission", "Reply"),
}
_NAMES = {
    "perdure.client.blocking_client": ("BlockingClient", "connect_blocking"),
    "perdure.client.client": ("Client", "connect", "resume_events"),
    "perdure.client.conversation.blocking_session": ("BlockingAnswer", "BlockingSession"),
    "perdure.client.conversation.requests": ("PermissionHandler", "QuestionHandler", "Refusal"),
    "perdure.client.conversation.session": ("Answer", "AnswerError", "Session"),
    "perdure.client.errors": ("ClientError",),
    "perdure.client.pages": ("History",),
    "perdure.client.reconnect": ("Reconnected",),
    "perdure.client.typed_events": ("DurableEvent", "DurablePlace", "LiveEvent", "UnknownFact"),
    "perdure.client.wire": ("CallOptions",),
    "perdure.embedded.blocking_host": ("BlockingHost",),
    "perdure.embedded.host": ("Host",),
    "perdure.location.context.registry": ("ContextText", "Subject"),
    "perdure.runtime.plugins.plugins": ("Plugin", "PluginError", "PluginHost"),
    "perdure.schema.approval.permission": ("PermissionRequest",),
    "perdure.schema.approval.question": ("QuestionRequest",),
    "perdure.schema.errors": (
        "AttemptNotFoundError",
        "CredentialNotFoundError",
        "DamagedRowError",
        "DeclaredError",
        "ForbiddenError",
        "InboxFullError",
        "IntegrationNotFoundError",
        "InvalidCursorError",
        "InvalidRequestError",
        "JobNotFoundError",
        "McpServerNotFoundError",
        "MessageNotFoundError",
        "MethodNotAllowedError",
        "MoveConflictError",
        "NotFoundError",
        "NothingToDecideError",
        "PayloadTooLargeError",
        "PerdureError",
        "PermissionConflictError",
        "PermissionNotFoundError",
        "PromptConflictError",
        "PromptSettledError",
        "ProviderNotFoundError",
        "PtyNotFoundError",
        "QuestionNotFoundError",
        "RevertConflictError",
        "ServiceUnavailableError",
        "SessionBusyError",
        "SessionNotFoundError",
        "StorageError",
        "UnauthorizedError",
        "UnknownError",
        "UnsupportedMediaTypeError",
    ),
    "perdure.schema.ids": (
        "EventID",
        "JobID",
        "MessageID",
        "PermissionID",
        "ProjectID",
        "PtyID",
        "QuestionID",
        "SessionID",
        "ToolCallID",
        "WorkspaceID",
    ),
    "perdure.schema.location": ("LocationInfo", "LocationRef"),
    "perdure.schema.models.model": ("ModelInfo", "ModelRef", "ProviderInfo", "TokenUsage"),
    "perdure.schema.page": ("Page",),
    "perdure.schema.session.event": ("SessionEvent",),
    "perdure.schema.session.message": (
        "AgentSwitchedMessage",
        "AssistantMessage",
        "AssistantPart",
        "CompactionMessage",
        "ModelSwitchedMessage",
        "ReasoningPart",
        "SessionMessage",
        "ShellMessage",
        "SyntheticMessage",
        "SystemMessage",
        "TextPart",
        "ToolPart",
        "UserMessage",
    ),
    "perdure.schema.session.prompt": ("FileInput", "PromptInput"),
    "perdure.schema.session.receipt": ("AdmittedPrompt",),
    "perdure.schema.session.session": ("SessionInfo",),
    "perdure.schema.session.tool": (
        "CompletedState",
        "ErrorState",
        "PendingState",
        "RunningState",
        "ToolState",
    ),
    "perdure.schema.settings.agent": ("AgentInfo",),
    "perdure.schema.settings.session_mcp": ("GivenMcpServer",),
    "perdure.tools.api.function_tool": ("tool",),
    "perdure.tools.api.registry": ("ToolRegistrationError",),
    "perdure.tools.api.schema_tool": ("SchemaTool", "SchemaToolResult"),
    "perdure.tools.api.tool": ("Tool", "ToolCallContext", "ToolFailure"),
    "perdure.version": ("__version__",),
}
_HOMES = {name: (module, name) for module, names in _NAMES.items() for name in names} | _RENAMED


def __getattr__(name: str) -> object:
    from importlib import import_module

    if name in _MODULES:
        return import_module(f"perdure.{name}")
    if name not in _HOMES:
        raise AttributeError(f"module 'perdure' has no attribute {name!r}")
    module, attribute = _HOMES[name]
    found = globals()[name] = getattr(import_module(module), attribute)
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
