"""The transport of a client: it takes a request to a server and brings back the response.

`client.http_transport` does so over a network, `embedded.asgi_transport` within one process. A
transport knows neither the operations nor what their answers mean.

Invariant: a failure of a transport is a ClientError of the reason `transport`, and closing a
response ends its request.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol, runtime_checkable

from perdure.schema.value import Confidential


class Request(Confidential, kw_only=True):
    method: str
    target: str
    """Path and query, encoded as on the wire."""
    headers: Mapping[str, str]
    """Their names are in lower case."""
    body: bytes | None
    silence_seconds_max: float | None
    """How long a connection may stay silent before it counts as lost; None waits for ever."""


class Response(Protocol):
    """A response whose status and headers have arrived."""

    @property
    def status(self) -> int: ...
    @property
    def content_type(self) -> str:
        """The header as it came; empty if there is none."""
        ...

    async def read(self) -> bytes:
        """The whole body, decompressed."""
        ...

    def chunks(self) -> AsyncGenerator[bytes]:
        """The same body in the pieces in which it arrives."""
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Transport(Protocol):
    async def send(self, outgoing: Request) -> Response: ...
    async def aclose(self) -> None: ...
