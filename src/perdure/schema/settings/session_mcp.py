"""MCP servers that a client gives to one Session, in the form of the configuration.

Their environment and headers may hold secrets: they are stored, and no answer shows them.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.schema.codec import ConfidentialRecord, Record


class GivenMcpTimeout(Record):
    """Milliseconds."""

    startup: int | UnsetType = UNSET
    request: int | UnsetType = UNSET


class GivenMcpOauth(ConfidentialRecord):
    client_id: str | UnsetType = UNSET
    client_secret: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    callback_port: int | UnsetType = UNSET
    redirect_uri: str | UnsetType = UNSET


class GivenMcpServer(ConfidentialRecord):
    """A program (`local`) or an address (`remote`) that only one Session uses."""

    type: Literal["local", "remote"]
    command: tuple[str, ...] | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    """Relative to the directory of the Session."""
    environment: dict[str, str] | UnsetType = UNSET
    url: str | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    oauth: GivenMcpOauth | bool | UnsetType = UNSET
    """`false`: no login."""
    timeout: int | GivenMcpTimeout | UnsetType = UNSET


GivenMcpServers = dict[str, GivenMcpServer]
"""By name."""
