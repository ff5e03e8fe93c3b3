"""The one thing a model call needs from the world: an HTTP POST whose answer streams."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from perdure.schema.value import Value


class HttpRequest(Value, kw_only=True):
    url: str
    headers: Mapping[str, str]
    body: tuple[bytes, ...]
    """Written one after the other: a long conversation is never joined into one string."""
    method: str = "POST"
    connect_seconds_max: float | None = None
    """For a connection; None leaves it to the transport, 0 waits for ever."""


class HttpResponse(Value, kw_only=True):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    chunks: AsyncIterator[bytes]
    """The body as it arrives, decoded from its transfer and content encoding."""


class TransportError(Exception):
    """No connection, a broken one, or an answer that is not HTTP."""


class HttpTransport(Protocol):
    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Send `request`. Entering waits for the response head; leaving closes what is unread.

        Raises TransportError, on entering or while reading. No retries, no redirects.
        """
        ...
