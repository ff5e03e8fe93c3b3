"""Port for the MCP servers that clients gave to Sessions, with their secrets.

The adapter is host.credentials.session_servers.
"""

from typing import Protocol

from perdure.schema.ids import SessionID
from perdure.schema.settings.session_mcp import GivenMcpServers

Version = tuple[int, int, int]
"""Changes with each change of what is stored."""


class SessionServerStore(Protocol):
    def version(self, session_id: SessionID) -> Version | None:
        """Of what is stored for a Session; None for nothing. Raises CredentialStoreError."""
        ...

    def load(self, session_id: SessionID) -> GivenMcpServers:
        """The servers of a Session. Raises CredentialStoreError if they cannot be read."""
        ...

    def save(self, session_id: SessionID, servers: GivenMcpServers) -> None:
        """Replace the servers durably; none removes them. Raises CredentialStoreError."""
        ...


class NoSessionServers:
    """A store that holds nothing."""

    def version(self, session_id: SessionID) -> Version | None:
        return None

    def load(self, session_id: SessionID) -> GivenMcpServers:
        return {}

    def save(self, session_id: SessionID, servers: GivenMcpServers) -> None:
        return None
