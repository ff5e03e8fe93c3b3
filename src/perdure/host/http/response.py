"""Parses one HTTP response incrementally: head, body pieces and end.

No I/O: `feed` takes received bytes, `take` returns ready body bytes. A body ends by its chunks, by
its length, or with the connection; in the first two cases a closed connection is an error. Interim
(1xx) responses are skipped.

Invariant: whatever the bytes, the only exception is TransportError.
"""

from typing import Final

from perdure.net.transport import TransportError

HEAD_BYTES_MAX: Final = 64 * 1024


class ResponseParser:
    """httptools calls the `on_` methods."""

    def __init__(self) -> None:
        self.status: int | None = None
        """Known when the head is complete."""
        self.headers: dict[str, str] = {}
        self.complete = False
        self.reusable = False
        """Whether the connection may carry another request after this response."""
        self.bytes_seen = 0
        self.ready_bytes = 0
        self._ready: list[bytes] = []
        self._bytes_without_body = 0
        """Bytes since the last piece of body: head, chunk framing or trailers."""
        # Loaded with the first response: a run with the built-in model needs none.
        import httptools

        self._parser = httptools.HttpResponseParser(self)
        self._refusals = (httptools.HttpParserError, httptools.HttpParserUpgrade)

    def feed(self, data: bytes) -> None:
        self.bytes_seen += len(data)
        self._bytes_without_body += len(data)
        if self.complete:
            self.reusable = False
            return
        try:
            self._parser.feed_data(data)
        except self._refusals as error:
            raise TransportError(f"the answer is not HTTP: {error}") from error
        if self._bytes_without_body > HEAD_BYTES_MAX and not self.complete:
            raise TransportError(f"the head of the answer is larger than {HEAD_BYTES_MAX} bytes")

    def end(self) -> None:
        """Handle the end of the connection, which is valid only for a body without other end."""
        if self.complete:
            return
        if self.bytes_seen == 0:
            raise TransportError("the connection was closed before an answer came")
        if self.status is None or not self._ends_with_connection():
            raise TransportError("the connection was closed in the middle of the answer")
        self.complete = True

    def take(self) -> bytes:
        """Remove and return all ready body bytes."""
        ready = self._ready
        if not ready:
            return b""
        taken = ready[0] if len(ready) == 1 else b"".join(ready)
        ready.clear()
        self.ready_bytes = 0
        return taken

    def on_header(self, name: bytes, value: bytes) -> None:
        if self.status is not None:
            return
        key, text = name.decode("latin-1").lower(), value.decode("latin-1")
        present = self.headers.get(key)
        self.headers[key] = text if present is None else f"{present}, {text}"

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status < 200:
            self.headers.clear()
            return
        self.status = status

    def on_body(self, body: bytes) -> None:
        self._ready.append(body)
        self._bytes_without_body = 0
        self.ready_bytes += len(body)

    def on_message_complete(self) -> None:
        if self.status is None:
            return
        self.complete = True
        self.reusable = self._parser.should_keep_alive()

    def _ends_with_connection(self) -> bool:
        chunked = "chunked" in self.headers.get("transfer-encoding", "").lower()
        return not chunked and "content-length" not in self.headers
