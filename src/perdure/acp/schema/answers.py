"""What an agent answers to the requests of a client."""

from perdure.acp.schema.config_option import ConfigOption, Modes
from perdure.acp.wire.wire_value import WireValue
from perdure.schema.codec import JsonObject


class Nothing(WireValue):
    """The request was carried out."""


class Opened(WireValue):
    """A Session that is open now. In the first version its commands follow as an update."""

    modes: Modes | None = None
    config_options: tuple[ConfigOption, ...] | None = None
    session_id: str | None = None


class Listed(WireValue):
    session_id: str
    cwd: str
    title: str
    updated_at: str


class SessionList(WireValue):
    sessions: list[Listed]
    next_cursor: str | None = None


class OptionsSet(WireValue):
    config_options: tuple[ConfigOption, ...]


class PromptDone(WireValue):
    stop_reason: str


class AuthMethod(WireValue):
    id: str
    name: str
    description: str
    type: str | None = None
    args: tuple[str, ...] | None = None


class Implementation(WireValue):
    name: str
    title: str
    version: str


class Initialized(WireValue):
    protocol_version: int
    agent_capabilities: JsonObject
    auth_methods: tuple[AuthMethod, ...]
    agent_info: Implementation
