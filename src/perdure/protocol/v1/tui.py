"""What an editor has the terminal client do in V1: each request becomes an event of the stream."""

from typing import Annotated, Final, Literal

from msgspec import Meta

from perdure.protocol.v1.endpoint import declare
from perdure.schema.codec import JsonObject, Payload
from perdure.schema.ids import SuppliedSessionID

_Text = Annotated[str, Meta(max_length=1_000_000)]


class AppendV1Prompt(Payload):
    text: _Text


class ExecuteV1Command(Payload):
    command: Annotated[str, Meta(max_length=200)]


class ShowV1Toast(Payload):
    message: Annotated[str, Meta(max_length=10_000)]
    variant: Literal["info", "success", "warning", "error"]
    title: Annotated[str, Meta(max_length=200)] | None = None
    duration: Annotated[int, Meta(gt=0)] | None = None


class SelectV1Session(Payload):
    session_id: SuppliedSessionID


class PublishV1Event(Payload):
    type: Literal[
        "tui.prompt.append", "tui.command.execute", "tui.toast.show", "tui.session.select"
    ]
    properties: JsonObject


APPEND_PROMPT: Final = declare(
    "POST", "/tui/append-prompt", "tui.appendPrompt", bool, body=AppendV1Prompt
)
EXECUTE_COMMAND: Final = declare(
    "POST", "/tui/execute-command", "tui.executeCommand", bool, body=ExecuteV1Command
)
SHOW_TOAST: Final = declare("POST", "/tui/show-toast", "tui.showToast", bool, body=ShowV1Toast)
SELECT_SESSION: Final = declare(
    "POST", "/tui/select-session", "tui.selectSession", bool, body=SelectV1Session
)
PUBLISH: Final = declare("POST", "/tui/publish", "tui.publish", bool, body=PublishV1Event)
OPEN_HELP: Final = declare("POST", "/tui/open-help", "tui.openHelp", bool)
OPEN_SESSIONS: Final = declare("POST", "/tui/open-sessions", "tui.openSessions", bool)
OPEN_THEMES: Final = declare("POST", "/tui/open-themes", "tui.openThemes", bool)
OPEN_MODELS: Final = declare("POST", "/tui/open-models", "tui.openModels", bool)
SUBMIT_PROMPT: Final = declare("POST", "/tui/submit-prompt", "tui.submitPrompt", bool)
CLEAR_PROMPT: Final = declare("POST", "/tui/clear-prompt", "tui.clearPrompt", bool)

COMMANDS: Final = {
    OPEN_HELP.operation_id: "help.show",
    OPEN_SESSIONS.operation_id: "session.list",
    OPEN_THEMES.operation_id: "theme.switch",
    OPEN_MODELS.operation_id: "model.list",
    SUBMIT_PROMPT.operation_id: "prompt.submit",
    CLEAR_PROMPT.operation_id: "prompt.clear",
}
"""The command of the terminal client that each route without a body stands for."""

ENDPOINTS: Final = (
    APPEND_PROMPT,
    EXECUTE_COMMAND,
    SHOW_TOAST,
    SELECT_SESSION,
    PUBLISH,
    OPEN_HELP,
    OPEN_SESSIONS,
    OPEN_THEMES,
    OPEN_MODELS,
    SUBMIT_PROMPT,
    CLEAR_PROMPT,
)
