"""What clients ask for. Optional fields may be null; fields that are not known are ignored."""

from perdure.acp.schema.content import ContentBlock
from perdure.acp.wire.wire_value import WireValue
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.ids import SessionID


class Initialize(WireValue):
    protocol_version: int
    client_capabilities: JsonValue = None
    """What is not understood of them counts as absent."""
    capabilities: JsonValue = None
    """The same in the second version."""


class Authenticate(WireValue):
    method_id: str


class OfSession(WireValue):
    session_id: SessionID


class NewSession(WireValue):
    cwd: str
    mcp_servers: list[JsonObject] | None = None
    additional_directories: list[str] | None = None


class OpenSession(WireValue):
    """Of load, resume and fork."""

    session_id: SessionID
    cwd: str
    mcp_servers: list[JsonObject] | None = None
    additional_directories: list[str] | None = None
    replay_from: JsonObject | None = None
    """Of the second version: from where the messages are told again."""


class ListSessions(WireValue):
    cwd: str | None = None
    cursor: str | None = None


class Prompt(WireValue):
    session_id: SessionID
    prompt: list[ContentBlock]


class SetMode(WireValue):
    session_id: SessionID
    mode_id: str


class SetConfigOption(WireValue):
    session_id: SessionID
    config_id: str
    value: str | bool


class EnvVariable(WireValue):
    name: str
    value: str


class StdioServer(WireValue):
    """An MCP server that the editor asks for, as a program."""

    name: str
    command: str
    args: list[str] | None = None
    env: list[EnvVariable] | None = None


class HttpServer(WireValue):
    name: str
    url: str
    headers: list[EnvVariable] | None = None
