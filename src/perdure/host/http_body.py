"""A response body as it is read: one piece for each wake-up, without its content encoding.

A compressed piece may hold a thousand times its size; it is handed over in bounded slices.
"""

import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from perdure.llm.transport import TransportError

SLICE_BYTES_MAX: Final = 1024 * 1024
_ZLIB_OR_GZIP: Final = zlib.MAX_WBITS | 32
_IDENTITY: Final = frozenset({"", "identity"})
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})

Read = Callable[[], Awaitable[bytes]]


def body(read: Read, content_encoding: str) -> AsyncIterator[bytes]:
    """Iterate over `read` until it gives nothing; raises TransportError."""
    encoding = content_encoding.strip().lower()
    if encoding in _IDENTITY:
        return _Plain(read)
    if encoding in _COMPRESSED:
        return _Inflated(read, headless=encoding == "deflate")
    raise TransportError(f"the answer has an unknown content encoding: {encoding[:40]!r}")


class _Plain:
    def __init__(self, read: Read) -> None:
        self._read = read

    def __aiter__(self) -> "_Plain":
        return self

    async def __anext__(self) -> bytes:
        data = await self._read()
        if not data:
            raise StopAsyncIteration
        return data


class _Inflated:
    def __init__(self, read: Read, *, headless: bool) -> None:
        self._read = read
        self._inflate = zlib.decompressobj(_ZLIB_OR_GZIP)
        self._compressed = b""
        self._may_be_headless = headless

    def __aiter__(self) -> "_Inflated":
        return self

    async def __anext__(self) -> bytes:
        while not self._inflate.eof:
            if not self._compressed:
                self._compressed = await self._read()
                if not self._compressed:
                    raise TransportError("the compressed answer was cut off")
            data = self._slice()
            if data:
                return data
        # The compressed stream is over; the response itself must come to its end as well.
        while await self._read():
            pass
        raise StopAsyncIteration

    def _slice(self) -> bytes:
        compressed, self._compressed = self._compressed, b""
        try:
            data = self._decompress(compressed)
        except zlib.error as error:
            raise TransportError(f"the compressed answer is damaged: {error}") from error
        self._compressed = self._inflate.unconsumed_tail
        self._may_be_headless = False
        return data

    def _decompress(self, compressed: bytes) -> bytes:
        try:
            return self._inflate.decompress(compressed, SLICE_BYTES_MAX)
        except zlib.error:
            if not self._may_be_headless:
                raise
            # Some servers send "deflate" without the header that the standard asks for.
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate.decompress(compressed, SLICE_BYTES_MAX)
