"""WireClient: every operation of the contract, with plain JSON values.

An answer is the JSON value below `data`. Constructing a client touches no network; closing it, or
leaving its scope, closes its connections.
"""

from collections.abc import Mapping
from typing import Self

from perdure.client.generated.wire_groups import WireGroups
from perdure.client.wire import AnyTransport, Wire


class WireClient(WireGroups):
    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        transport: AnyTransport | None = None,
    ) -> None:
        self._wire = Wire(base_url, headers=headers, transport=transport)
        super().__init__(self._wire)

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()
