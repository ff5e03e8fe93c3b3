"""The client for programs without an event loop: the same groups, and every call waits.

Streams are generators: the first step opens the request, and leaving them closes it.
"""

from collections.abc import Mapping
from typing import Self

from perdure.client.blocking import Blocking
from perdure.client.client import PerdureClient
from perdure.client.generated.sync_groups import SyncGroups
from perdure.client.wire import AnyTransport

__all__ = ["SyncPerdureClient"]


class SyncPerdureClient(SyncGroups):
    """For one thread. `with` it, or call `close`."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        transport: AnyTransport | None = None,
    ) -> None:
        self._client = PerdureClient(base_url, headers=headers, transport=transport)
        self._blocking = Blocking()
        super().__init__(self._client, self._blocking)

    def close(self) -> None:
        """Close the connections. Closing twice is harmless."""
        if not self._blocking.closed:
            self._blocking.run(self._client.aclose())
            self._blocking.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()
