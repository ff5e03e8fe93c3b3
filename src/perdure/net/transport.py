"""The HTTP transport of model calls: a request whose response streams."""

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from perdure.schema.value import Value


class HttpRequest(Value, kw_only=True):
    url: str
    headers: Mapping[str, str]
    body: tuple[bytes, ...]
    """Written in order, so that a long conversation is never joined into one string."""
    method: str = "POST"
    connect_seconds_max: float | None = None
    """To connect; None leaves it to the transport, 0 means no timeout."""


class HttpResponse(Value, kw_only=True):
    status: int
    headers: Mapping[str, str]
    """Names in lower case."""
    chunks: AsyncIterator[bytes]
    """The body as it arrives, decoded from its transfer and content encoding."""


class TransportError(Exception):
    """The connection failed or broke, or the answer is not HTTP."""


class UnreadableAnswerError(TransportError):
    """The answer came and cannot be read; sending the request again would bring the same."""


class HttpTransport(Protocol):
    def open(self, request: HttpRequest) -> AbstractAsyncContextManager[HttpResponse]:
        """Send `request`. Entering waits for the response headers; leaving closes the body.

        Raises TransportError, on entering or while reading. No retries, no redirects.
        """
        ...
