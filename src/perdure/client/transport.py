"""How a call travels: what goes out, what comes back, and the seam between the client and its way.

A network is one way (`http_carrier`), the memory of one process another (`embedded`). What is asked
and what an answer means is no concern of a carrier.

Invariant: whatever fails on the way is a ClientError of the reason `transport`, and closing an
answer ends its request.
"""

from collections.abc import AsyncGenerator, Mapping
from typing import Protocol, runtime_checkable

from perdure.schema.value import Confidential


class Request(Confidential, kw_only=True):
    method: str
    target: str
    """Path and query, spelled as on the wire."""
    headers: Mapping[str, str]
    """By their names in lower case."""
    body: bytes | None
    silence_seconds_max: float | None
    """How long nothing may come back where a connection can die unseen; None waits for ever."""


class Response(Protocol):
    """An answer whose head has come."""

    @property
    def status(self) -> int: ...
    @property
    def content_type(self) -> str:
        """The header as it came; empty without one."""
        ...

    async def read(self) -> bytes:
        """The body, decompressed, once it has come to its end."""
        ...

    def chunks(self) -> AsyncGenerator[bytes]:
        """The same, as it comes."""
        ...

    async def aclose(self) -> None: ...


@runtime_checkable
class Transport(Protocol):
    async def send(self, outgoing: Request) -> Response: ...
    async def aclose(self) -> None: ...
