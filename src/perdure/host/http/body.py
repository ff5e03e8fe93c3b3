"""Decodes the content encoding of a response body while it is read.

A compressed piece may expand a thousandfold, so it is returned in bounded slices; for untrusted
servers the caller limits the expansion of the whole body.
"""

import asyncio
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Final

from perdure.net.transport import TransportError, UnreadableAnswerError

SLICE_BYTES_MAX: Final = 1024 * 1024
INFLATION_FREE_BYTES: Final = 64 * 1024
"""Up to this size the expansion is not limited: a small body does no harm."""
_ZLIB_OR_GZIP: Final = zlib.MAX_WBITS | 32
_IDENTITY: Final = frozenset({"", "identity"})
_COMPRESSED: Final = frozenset({"gzip", "x-gzip", "deflate"})

Read = Callable[[], Awaitable[bytes]]


def decode_body(
    read: Read, content_encoding: str, *, inflation_max: int | None = None
) -> AsyncIterator[bytes]:
    """Iterate over `read` until it returns nothing. Raises TransportError.

    A compressed body may expand at most `inflation_max` times.
    """
    encoding = content_encoding.strip().lower()
    if encoding in _IDENTITY:
        return _Plain(read)
    if encoding in _COMPRESSED:
        return _Inflated(read, headless=encoding == "deflate", inflation_max=inflation_max)
    raise UnreadableAnswerError(f"the answer has an unknown content encoding: {encoding[:40]!r}")


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
    def __init__(self, read: Read, *, headless: bool, inflation_max: int | None) -> None:
        self._read = read
        self._inflation_max = inflation_max
        self._bytes_in = self._bytes_out = 0
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
                self._bytes_in += len(self._compressed)
            else:
                # The next slice of the same piece: other tasks run in between.
                await asyncio.sleep(0)
            data = self._slice()
            if data:
                return data
        # The compressed stream has ended; read the response to its end as well.
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
        self._check_growth(len(data))
        return data

    def _check_growth(self, size: int) -> None:
        self._bytes_out += size
        if self._inflation_max is None or self._bytes_out <= INFLATION_FREE_BYTES:
            return
        used = self._bytes_in - len(self._compressed)
        if self._bytes_out > used * self._inflation_max:
            times = self._inflation_max
            raise TransportError(f"the answer is compressed to less than 1/{times} of its size")

    def _decompress(self, compressed: bytes) -> bytes:
        try:
            return self._inflate.decompress(compressed, SLICE_BYTES_MAX)
        except zlib.error:
            if not self._may_be_headless:
                raise
            # Some servers send "deflate" without the header that the standard requires.
            self._inflate = zlib.decompressobj(-zlib.MAX_WBITS)
            return self._inflate.decompress(compressed, SLICE_BYTES_MAX)
