"""The wire client for programs without an event loop: every call blocks until its answer is there.

Kept for programs that used `SyncPerdureClient`. New ones use `perdure.connect_blocking`.
"""

from collections.abc import Mapping
from typing import Self

from perdure.client.blocking import Blocking
from perdure.client.generated.sync_groups import SyncGroups
from perdure.client.wire import AnyTransport
from perdure.client.wire_client import WireClient

__all__ = ["BlockingWireClient"]


class BlockingWireClient(SyncGroups):
    """For one thread. `with` it, or call `close`."""

    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        transport: AnyTransport | None = None,
    ) -> None:
        self._client = WireClient(base_url, headers=headers, transport=transport)
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
