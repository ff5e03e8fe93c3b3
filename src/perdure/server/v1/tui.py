"""V1 requests to the terminal client: each is sent to the subscribers of the event streams."""

from typing import TYPE_CHECKING, Final

from perdure.protocol.v1 import tui
from perdure.protocol.v1.tui import (
    AppendV1Prompt,
    ExecuteV1Command,
    PublishV1Event,
    SelectV1Session,
    ShowV1Toast,
)
from perdure.server.binding import Decoded
from perdure.server.call import Call, Handler, Handlers
from perdure.server.v1 import location

if TYPE_CHECKING:
    from perdure.server.v1.stream.events import V1Events

_COMMAND: Final = "tui.command.execute"


class TerminalRequests:
    def __init__(self, events: "V1Events") -> None:
        self._events = events

    async def append_prompt(self, call: Call[None, AppendV1Prompt]) -> bool:
        return self._tell(call, "tui.prompt.append", {"text": call.body.text})

    async def execute_command(self, call: Call[None, ExecuteV1Command]) -> bool:
        return self._tell(call, _COMMAND, {"command": call.body.command})

    async def show_toast(self, call: Call[None, ShowV1Toast]) -> bool:
        body = call.body
        given = {"title": body.title, "duration": body.duration}
        shown = {name: value for name, value in given.items() if value is not None}
        told = {**shown, "message": body.message, "variant": body.variant}
        return self._tell(call, "tui.toast.show", told)

    async def select_session(self, call: Call[None, SelectV1Session]) -> bool:
        await call.runtime.sessions.require_location(call.body.session_id)
        return self._tell(call, "tui.session.select", {"sessionID": call.body.session_id})

    async def publish(self, call: Call[None, PublishV1Event]) -> bool:
        return self._tell(call, call.body.type, call.body.properties)

    def commander(self, command: str) -> Handler[None, None, bool]:
        """The handler of a route that stands for a command of the terminal client."""

        async def run(call: Call[None, None]) -> bool:
            return self._tell(call, _COMMAND, {"command": command})

        return run

    def _tell(self, call: Call[Decoded, Decoded], type: str, properties: object) -> bool:
        self._events.tell(type, properties, location.find_named(call))
        return True


def make_handlers(events: "V1Events") -> Handlers:
    requests = TerminalRequests(events)
    commands = {
        operation: requests.commander(command) for operation, command in tui.COMMANDS.items()
    }
    return {
        **commands,
        tui.APPEND_PROMPT.operation_id: requests.append_prompt,
        tui.EXECUTE_COMMAND.operation_id: requests.execute_command,
        tui.SHOW_TOAST.operation_id: requests.show_toast,
        tui.SELECT_SESSION.operation_id: requests.select_session,
        tui.PUBLISH.operation_id: requests.publish,
    }
