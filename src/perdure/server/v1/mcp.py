"""V1 MCP servers: those of V2 (server.handlers.mcp), in the states that V1 knows."""

from typing import Final
from urllib.parse import parse_qs, urlsplit

from msgspec import UNSET

from perdure.protocol.v1 import mcp
from perdure.protocol.v1.mcp import CompleteV1McpLogin, V1McpLogin, V1McpLogout, V1McpStatus
from perdure.schema.errors import InvalidRequestError, McpServerNotFoundError
from perdure.schema.models.integration import AttemptFailed
from perdure.schema.settings.mcp import McpServerInfo
from perdure.server.binding import Decoded
from perdure.server.call import Call, Handlers
from perdure.server.v1 import location
from perdure.server.v1.credential import V1Logins

_SHOWN_MILLIS_MAX: Final = 3_000
_CONNECTED_MILLIS_MAX: Final = 30_000
_LOOK_SECONDS: Final = 0.1


async def status(call: Call[None, None]) -> dict[str, V1McpStatus]:
    found = await _list_settled(call, None, _SHOWN_MILLIS_MAX)
    return {info.name: show(info) for info in found}


async def connect(call: Call[None, None]) -> bool:
    """Start a server, or start it again; false if it cannot be connected."""
    name = call.params["name"]
    await call.runtime.mcp.restart(location.resolve(call), name)
    return (await _find(call, name)).status == "connected"


class McpLogins:
    """The login that was last begun for each server; V1 does not name an attempt."""

    def __init__(self) -> None:
        self._logins = V1Logins({})

    async def login(self, call: Call[None, None]) -> V1McpLogin:
        name, where = call.params["name"], location.resolve(call)
        begun = await call.runtime.mcp.login(where, name)
        self._logins.remember(_key(where.directory, name), begun.attempt_id)
        state = parse_qs(urlsplit(begun.url).query).get("state", [""])[0]
        return V1McpLogin(begun.url, state)

    async def complete(self, call: Call[None, CompleteV1McpLogin]) -> V1McpStatus:
        name, where = call.params["name"], location.resolve(call)
        attempt_id = self._logins.attempts.get(_key(where.directory, name))
        if attempt_id is None:
            if name not in {info.name for info in await call.runtime.mcp.list(where)}:
                raise McpServerNotFoundError(name)
            raise InvalidRequestError(f"No login to the MCP server {name[:100]} was begun")
        await call.runtime.integrations.complete(attempt_id, call.body.code)
        reached = await call.runtime.integrations.status(attempt_id)
        if isinstance(reached, AttemptFailed):
            raise InvalidRequestError(f"The login was not completed: {reached.message}")
        return show(await _find(call, name))


async def logout(call: Call[None, None]) -> V1McpLogout:
    await call.runtime.mcp.logout(location.resolve(call), call.params["name"])
    return V1McpLogout(success=True)


def show(info: McpServerInfo) -> V1McpStatus:
    """V1 has no word for a server that waits for the first turn: it is not in use."""
    match info.status:
        case "connected" | "needs_auth":
            return V1McpStatus(info.status)
        case "disabled" | "waiting":
            return V1McpStatus("disabled")
        case "starting":
            return V1McpStatus("failed", "It is still starting; ask again")
        case "failed" | "untrusted":
            error = "It ended or did not start" if info.error is UNSET else info.error
            return V1McpStatus("failed", error)


async def _find(call: Call[Decoded, Decoded], name: str) -> McpServerInfo:
    """The server, once a start that is under way has succeeded or failed."""
    for info in await _list_settled(call, name, _CONNECTED_MILLIS_MAX):
        if info.name == name:
            return info
    raise McpServerNotFoundError(name)


async def _list_settled(
    call: Call[Decoded, Decoded], asked: str | None, millis_max: int
) -> tuple[McpServerInfo, ...]:
    """The servers, after a bounded wait for those that are starting, or for the one `asked`."""
    where, clock = location.resolve(call), call.runtime.clock
    deadline = clock.now_millis() + millis_max
    while True:
        found = await call.runtime.mcp.list(where)
        late = [info for info in found if info.status == "starting" and asked in (None, info.name)]
        if not late or clock.now_millis() >= deadline:
            return found
        await clock.sleep(_LOOK_SECONDS)


def _key(directory: str, name: str) -> str:
    return f"{directory}\0{name}"


HANDLERS: Final[Handlers] = {
    mcp.STATUS.operation_id: status,
    mcp.CONNECT.operation_id: connect,
    mcp.LOGOUT.operation_id: logout,
}


def make_handlers() -> Handlers:
    logins = McpLogins()
    return {
        **HANDLERS,
        mcp.LOGIN.operation_id: logins.login,
        mcp.COMPLETE.operation_id: logins.complete,
    }
