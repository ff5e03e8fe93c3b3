"""One request as the app gets it: bytes with names, decoded only when they are used.

The body is bounded while it arrives. `auth` decides whether the request may be here, `dispatch`
what it means.
"""

from typing import Final

from perdure.protocol import query
from perdure.schema.errors import InvalidRequestError, PayloadTooLargeError
from perdure.server.http.asgi import Header, Receive, Scope

_LENGTH_DIGITS_MAX: Final = 20


class Request:
    """Header names are lower case; of a repeated header `headers` holds the last."""

    __slots__ = (
        "_fields",
        "_query_string",
        "_receive",
        "client",
        "headers",
        "is_upgrade",
        "method",
        "path",
        "raw_headers",
    )

    def __init__(self, scope: Scope, receive: Receive) -> None:
        self.is_upgrade = scope["type"] == "websocket"
        """Whether the client asks for a WebSocket."""
        self.method = scope["method"]
        self.path = scope["raw_path"]
        self.raw_headers: list[Header] = scope["headers"]
        self.headers: dict[bytes, bytes] = dict(self.raw_headers)
        peer = scope["client"]
        self.client: str | None = None if peer is None else str(peer[0])
        """The address that it came from; None for a caller in this process."""
        self._query_string = scope["query_string"]
        self._fields: query.Fields | None = None
        self._receive = receive

    @property
    def routed_method(self) -> str:
        """The method by which the handler is found: HEAD is answered as GET is."""
        return "GET" if self.method == "HEAD" else self.method

    @property
    def fields(self) -> query.Fields:
        """The query string's fields."""
        if self._fields is None:
            self._fields = query.parse(self._query_string)
        return self._fields

    def header(self, name: bytes) -> str | None:
        """A header as text: decoded as UTF-8, or as Latin-1 where it is not UTF-8."""
        value = self.headers.get(name)
        if value is None:
            return None
        try:
            return value.decode()
        except UnicodeDecodeError:
            return value.decode("latin-1")

    async def body(self, *, bytes_max: int) -> bytes:
        """The whole body. Raises PayloadTooLargeError as soon as it is known to be too large."""
        if _number(self.headers.get(b"content-length", b"0")) > bytes_max:
            raise PayloadTooLargeError(bytes_max)
        chunks: list[bytes] = []
        size = 0
        while True:
            message = await self._receive()
            if message["type"] != "http.request":
                raise InvalidRequestError("The request body ended early", kind="Payload")
            chunk = message["body"]
            size += len(chunk)
            if size > bytes_max:
                raise PayloadTooLargeError(bytes_max)
            chunks.append(chunk)
            if not message["more_body"]:
                return chunks[0] if len(chunks) == 1 else b"".join(chunks)


def _number(content_length: bytes) -> int:
    """A length of any spelling that HTTP allows: digits, with any number of zeros before them."""
    text = content_length.strip(b" \t")
    if not text.isdigit():
        raise InvalidRequestError("Content-Length is not a number", kind="Payload")
    digits = text.lstrip(b"0")
    # Python refuses to read thousands of digits, and no request is that long.
    return int(digits[:_LENGTH_DIGITS_MAX] or b"0")
