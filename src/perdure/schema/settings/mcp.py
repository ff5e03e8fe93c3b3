"""MCP servers of a Location, as clients see them."""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import Record

McpStatus = Literal[
    "waiting", "starting", "connected", "failed", "needs_auth", "disabled", "untrusted"
]
"""`waiting`: it is started by the first turn that runs here. `untrusted`: a project asks for it,
and a person has not granted that."""


class McpServerInfo(Record):
    name: str
    type: Literal["local", "remote"] | UnsetType
    """Unset for a server that is not trusted."""
    status: McpStatus
    tools: tuple[str, ...] = ()
    """The names that models are offered them by."""
    error: str | UnsetType = UNSET
    """Why it failed, or what to do."""
    session: bool = False
    """Whether only the Session that was asked about uses it."""
    problems: tuple[str, ...] = ()
    """Tools that were left out, and why."""
