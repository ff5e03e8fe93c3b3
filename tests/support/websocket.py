"""A WebSocket client as plain as the RFC: it can be polite, rude, or slow."""

import asyncio
import base64
import os
import struct
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Final

from perdure.schema import codec
from tests.support.api import PATIENCE_SECONDS

TEXT: Final = 1
BINARY: Final = 2
CLOSE: Final = 8
PING: Final = 9
PONG: Final = 10


class RefusedUpgradeError(AssertionError):
    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(f"{status} {body!r}")
        self.status = status
        self.body = body


class WebSocket:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        transport = writer.transport
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    async def frame(self) -> tuple[int, bytes]:
        """The next frame: its kind and its payload."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            first, size = await self._reader.readexactly(2)
            assert first & 0x80, "the server sends whole messages"
            assert not size & 0x80, "the server does not mask"
            if size == 126:
                (size,) = struct.unpack("!H", await self._reader.readexactly(2))
            elif size == 127:
                (size,) = struct.unpack("!Q", await self._reader.readexactly(8))
            return first & 0x0F, await self._reader.readexactly(size)

    async def until(self, wanted: str) -> str:
        """Text up to and with `wanted`; other frames are passed over."""
        text = ""
        while wanted not in text:
            kind, data = await self.frame()
            assert kind != CLOSE, f"closed with {data!r} after {text!r}"
            text += data.decode() if kind == TEXT else ""
        return text

    async def cursor(self) -> int:
        """That of the next control frame."""
        while True:
            kind, data = await self.frame()
            if kind == BINARY:
                assert data[:1] == b"\0"
                return codec.decode_any(data[1:])["cursor"]

    async def closed(self) -> tuple[int, str]:
        """The code and reason of the server's close, past everything before it."""
        while True:
            kind, data = await self.frame()
            if kind == CLOSE:
                return struct.unpack("!H", data[:2])[0], data[2:].decode()

    async def end(self) -> bytes:
        """What comes until the connection is closed."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self._reader.read()

    async def say(self, text: str) -> None:
        await self.raw(masked(TEXT, text.encode()))

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()


def masked(
    kind: int, data: bytes, *, final: bool = True, mask: bytes = b"\x01\x80\xff\x42"
) -> bytes:
    """A frame as a client sends it."""
    size = len(data)
    first = (0x80 if final else 0) | kind
    if size < 126:
        head = struct.pack("!BB", first, 0x80 | size)
    elif size < 1 << 16:
        head = struct.pack("!BBH", first, 0x80 | 126, size)
    else:
        head = struct.pack("!BBQ", first, 0x80 | 127, size)
    # As two large numbers: byte by byte takes seconds for the largest frames.
    over = (mask * (size // 4 + 1))[:size]
    hidden = int.from_bytes(data, "big") ^ int.from_bytes(over, "big")
    return head + mask + hidden.to_bytes(size, "big")


def opening(path: str, headers: Mapping[str, str] | None = None) -> bytes:
    given = {
        "host": "localhost",
        "connection": "Upgrade",
        "upgrade": "websocket",
        "sec-websocket-version": "13",
        "sec-websocket-key": base64.b64encode(os.urandom(16)).decode(),
        **(headers or {}),
    }
    lines = [f"GET {path} HTTP/1.1", *(f"{name}: {value}" for name, value in given.items())]
    return "\r\n".join(lines).encode() + b"\r\n\r\n"


@asynccontextmanager
async def connected(
    port: int, path: str, headers: Mapping[str, str] | None = None, *, early: bytes = b""
) -> AsyncGenerator[WebSocket]:
    """`early` is sent with the request, before the server has agreed."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(opening(path, headers) + early)
        async with asyncio.timeout(PATIENCE_SECONDS):
            head = await reader.readuntil(b"\r\n\r\n")
            status = int(head.split()[1])
            if status != 101:
                raise RefusedUpgradeError(status, await reader.read())
        yield WebSocket(reader, writer)
    finally:
        writer.transport.abort()
