"""The MCP servers that clients give to Sessions: checked, stored, and ended with the Session."""

from perdure.core.settings import session_mcp
from perdure.core.settings.session_mcp import UnusableServerError
from perdure.location.registry import LocationRegistry
from perdure.ports import CredentialStoreError
from perdure.ports.session_mcp import SessionServerStore
from perdure.schema.errors import InvalidRequestError, ServiceUnavailableError
from perdure.schema.ids import SessionID
from perdure.schema.settings.session_mcp import GivenMcpServers


class SessionServers:
    def __init__(self, store: SessionServerStore, locations: LocationRegistry) -> None:
        self._store = store
        self._locations = locations

    def check(self, given: GivenMcpServers) -> None:
        """Raises InvalidRequestError for servers that cannot be used."""
        try:
            session_mcp.read_servers(given)
        except UnusableServerError as error:
            raise InvalidRequestError(str(error), kind="Payload", field="mcp") from error

    def replace(self, session_id: SessionID, given: GivenMcpServers) -> None:
        """Replace the servers of a Session; its next turn uses these. None removes them."""
        self.check(given)
        try:
            self._store.save(session_id, given)
        except CredentialStoreError as error:
            raise ServiceUnavailableError(str(error), service="session.mcp") from error
        if not given:
            self._locations.sessions.close(session_id)

    def forget(self, session_id: SessionID) -> None:
        """End the servers of a Session that is deleted, and remove what is stored of them."""
        self._locations.sessions.close(session_id)
        self._store.save(session_id, {})
