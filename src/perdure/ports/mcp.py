"""Port for MCP servers: connects to a server and speaks the protocol with it.

What a server sends is handed on as JSON and checked by core.mcp. Texts of errors may come from the
server and are bounded by the adapter.
"""

from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Confidential, Value


class McpError(Exception):
    """The server cannot be reached, or answered with an error. The message is for a person."""


class McpLoginRequiredError(McpError):
    """The server answers only after a login."""


McpListKind = Literal["tools", "prompts", "resources"]


class McpProcess(Confidential, kw_only=True):
    """A server that is started and spoken with over its input and output."""

    arguments: tuple[str, ...]
    directory: str
    environment: Mapping[str, str]
    limits: str = ""
    """What it cannot do, in words; empty if it may do everything. Told when it fails."""


class McpEndpoint(Confidential, kw_only=True):
    """A server that is spoken with over HTTP."""

    url: str
    headers: Mapping[str, str]


class McpProgress(Value):
    progress: float
    total: float | None
    message: str


class McpHandlers(Value, kw_only=True):
    """What a server may ask of its client, and tell it."""

    changed: Callable[[McpListKind], None]
    """Called when the server says that a list changed. Neither waits nor fails."""
    elicit: Callable[[JsonObject], Awaitable[JsonObject]]
    """Asks a person: the parameters of `elicitation/create`, and its result."""
    roots: tuple[str, ...] = ()
    """URIs of the directories that the server may work in."""


class McpConnection(Protocol):
    @property
    def instructions(self) -> str: ...

    @property
    def lists(self) -> frozenset[McpListKind]:
        """The lists that the server has."""
        ...

    async def list(self, kind: McpListKind) -> list[JsonValue]:
        """All pages of a list, within bounds. Raises McpError."""
        ...

    async def call_tool(
        self, name: str, arguments: JsonObject, progress: Callable[[McpProgress], None]
    ) -> JsonObject:
        """Call a tool. Cancelling tells the server. Raises McpError."""
        ...

    async def get_prompt(self, name: str, arguments: Mapping[str, str]) -> JsonObject:
        """Raises McpError."""
        ...

    async def read_resource(self, uri: str) -> JsonObject:
        """Raises McpError."""
        ...

    async def wait_closed(self) -> str:
        """Wait until the connection is lost, and say why."""
        ...


class McpConnector(Protocol):
    def connect(
        self, target: McpProcess | McpEndpoint, handlers: McpHandlers
    ) -> AbstractAsyncContextManager[McpConnection]:
        """Connect while the scope is open; when it ends, a process has ended too.

        Entering raises McpError. It is entered and left in one task; the connection may be used
        in others.
        """
        ...
