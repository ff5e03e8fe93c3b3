"""PerdureClient: the whole contract on one object, over whichever transport it is given.

Answers are plain JSON values with the surrounding `{data}` taken off. Building a client touches
no network; closing it, or leaving its scope, closes its connections.
"""

from collections.abc import Mapping
from typing import Self

import httpx2

from perdure.client.groups import (
    Agents,
    Events,
    Health,
    Locations,
    Models,
    Permissions,
    Providers,
    Questions,
    References,
    Skills,
)
from perdure.client.sessions import Sessions
from perdure.client.wire import Wire


class PerdureClient:
    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        transport: httpx2.AsyncBaseTransport | None = None,
    ) -> None:
        self._wire = Wire(base_url, headers=headers, transport=transport)
        self.sessions = Sessions(self._wire)
        self.permissions = Permissions(self._wire)
        self.questions = Questions(self._wire)
        self.events = Events(self._wire)
        self.agents = Agents(self._wire)
        self.models = Models(self._wire)
        self.providers = Providers(self._wire)
        self.skills = Skills(self._wire)
        self.references = References(self._wire)
        self.locations = Locations(self._wire)
        self.health = Health(self._wire)

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()
