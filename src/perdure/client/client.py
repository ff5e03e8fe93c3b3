"""The client with decoded values: records instead of dicts, branded ids, failures by kind.

Every answer is checked against the contract, which the plain client leaves to the server. Methods,
streams and options are the same.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Self

from perdure.client.generated.typed_groups import TypedGroups
from perdure.client.reconnect import Reconnected, resume
from perdure.client.typed_events import DurableEvent, DurablePlace, LiveEvent, UnknownFact
from perdure.client.typed_wire import TypedWire
from perdure.client.wire import AnyTransport, CallOptions, Wire
from perdure.schema.ids import SessionID

__all__ = [
    "DurableEvent",
    "DurablePlace",
    "LiveEvent",
    "Reconnected",
    "TypedPerdureClient",
    "UnknownFact",
    "resuming_events",
]


class TypedPerdureClient(TypedGroups):
    def __init__(
        self,
        base_url: str,
        *,
        headers: Mapping[str, str] | None = None,
        transport: AnyTransport | None = None,
    ) -> None:
        self._wire = Wire(base_url, headers=headers, transport=transport)
        super().__init__(TypedWire(self._wire))

    async def aclose(self) -> None:
        await self._wire.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.aclose()


def resuming_events(
    client: TypedPerdureClient,
    session_id: SessionID,
    *,
    after: int | None = None,
    reconnected: Callable[[Reconnected], None] | None = None,
    options: CallOptions | None = None,
) -> AsyncGenerator[DurableEvent]:
    """As `client.resuming_events`, with decoded events."""
    given = options or CallOptions()

    def opens(after: int | None, opened: Callable[[], None]) -> AsyncGenerator[DurableEvent]:
        options = CallOptions(headers=given.headers, opened=opened)
        return client.sessions.events(session_id, after=after, options=options)

    return resume(opens, lambda event: event.durable.seq, after=after, told=reconnected)
