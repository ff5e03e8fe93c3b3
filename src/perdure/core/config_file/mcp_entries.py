"""The entries of `mcp` in a configuration document, with the names that the file uses.

core.settings.mcp_servers merges the entries of several documents into servers.
"""

from typing import Literal

from msgspec import UNSET, UnsetType

from perdure.core.config_file.entries import Entry, Positive


class McpTimeoutEntry(Entry, frozen=True):
    """Milliseconds."""

    startup: Positive | UnsetType = UNSET
    request: Positive | UnsetType = UNSET


McpTimeout = Positive | McpTimeoutEntry
"""A number is for the start and for each request."""


class McpOauthEntry(Entry, frozen=True):
    client_id: str | UnsetType = UNSET
    client_secret: str | UnsetType = UNSET
    scope: str | UnsetType = UNSET
    callback_port: Positive | UnsetType = UNSET
    redirect_uri: str | UnsetType = UNSET


class McpServerEntry(Entry, frozen=True):
    """A server. Each document may set some of the fields, such as only `disabled`."""

    type: Literal["local", "remote"] | UnsetType = UNSET
    command: tuple[str, ...] | UnsetType = UNSET
    cwd: str | UnsetType = UNSET
    environment: dict[str, str] | UnsetType = UNSET
    url: str | UnsetType = UNSET
    headers: dict[str, str] | UnsetType = UNSET
    oauth: McpOauthEntry | Literal[False] | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    timeout: McpTimeout | UnsetType = UNSET


class McpEntry(Entry, frozen=True):
    timeout: McpTimeout | UnsetType = UNSET
    servers: dict[str, McpServerEntry] | UnsetType = UNSET
