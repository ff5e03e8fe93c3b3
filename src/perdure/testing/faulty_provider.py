"""A model server on a real socket that gives scripted answers and fails at scripted bytes.

It is a plain HTTP server on the loopback address: it reads and keeps a request, and writes the
bytes of the next ProviderAnswer up to the byte where its delivery ends.

    async with FaultyProvider() as provider:
        provider.then(ProviderAnswer(body=chat_stream({"content": "hello"}), ending=Reset(at=300)))
        ...  # let a model call reach provider.url
"""

import asyncio
import socket
import struct
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final, Self

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.schema.value import Value
from perdure.testing.provider_answer import (
    Close,
    Complete,
    ProviderAnswer,
    Reset,
    Stall,
    chat_stream,
)

_HEAD_BYTES_MAX: Final = 256 * 1024
_LINGER_NOT: Final = struct.pack("ii", 1, 0)
"""With this option, closing the socket resets the connection."""
_TURNS_BETWEEN_PIECES: Final = 3
"""Lets a reader on the same event loop take one piece before the next is sent."""

PLAIN_ANSWER: Final = ProviderAnswer(body=chat_stream({"content": "ok"}))


class ProviderRequest(Value):
    path: str
    headers: Mapping[str, str]
    """Names in lower case."""
    body: JsonObject


class FaultyProvider:
    """Use as an async context manager."""

    def __init__(self) -> None:
        self.requests: list[ProviderRequest] = []
        self.otherwise: Callable[[ProviderRequest], ProviderAnswer] = lambda request: PLAIN_ANSWER
        """Gives the answer when none is scripted."""
        self._script: deque[ProviderAnswer] = deque()
        self._asked = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._all_closed = asyncio.Event()
        self._all_closed.set()

    @property
    def url(self) -> str:
        """The base URL of an OpenAI-compatible API."""
        assert self._server is not None, "enter the provider first"
        port = self._server.sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}/v1"

    def then(self, *answers: ProviderAnswer) -> Self:
        """Script the answers to the next requests, one each."""
        self._script.extend(answers)
        return self

    async def until_asked(self, count: int) -> ProviderRequest:
        """Wait until `count` requests have arrived since the start, and give the last of them."""
        while len(self.requests) < count:
            self._asked.clear()
            await self._asked.wait()
        return self.requests[count - 1]

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(
            self._connected, "127.0.0.1", 0, limit=_HEAD_BYTES_MAX, backlog=512
        )
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._server is not None
        self._server.close()
        for writer in self._open:
            writer.transport.abort()
        await self._all_closed.wait()
        await self._server.wait_closed()

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open.add(writer)
        self._all_closed.clear()
        try:
            await self._serve(reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # The client closed the connection, as it may.
        finally:
            writer.close()
            self._open.discard(writer)
            if not self._open:
                self._all_closed.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        kept = True
        while kept:
            request = await _read(reader)
            self.requests.append(request)
            self._asked.set()
            answer = self._script.popleft() if self._script else self.otherwise(request)
            await _send(answer, writer)
            kept = await _end(answer, reader, writer)


async def _read(reader: asyncio.StreamReader) -> ProviderRequest:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    headers = {name.lower(): value.strip() for name, _, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    path = first.split(" ")[1]
    return ProviderRequest(path, headers, codec.decode_any(body) if body else {})


async def _send(answer: ProviderAnswer, writer: asyncio.StreamWriter) -> None:
    """The response up to where its delivery ends, piece by piece."""
    response = answer.response()
    if not isinstance(answer.ending, Complete):
        response = response[: answer.ending.at]
    start = 0
    for end in (*answer.pieces, len(response)):
        if start < end:
            writer.write(response[start:end])
            await writer.drain()
            start = end
        for _ in range(_TURNS_BETWEEN_PIECES if end < len(response) else 0):
            await asyncio.sleep(0)


async def _end(
    answer: ProviderAnswer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    """End the answer; whether the connection may carry another request."""
    match answer.ending:
        case Complete():
            return answer.framing == "chunked"
        case Close():
            return False
        case Reset():
            connection: socket.socket = writer.get_extra_info("socket")
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT)
            writer.transport.abort()
            return False
        case Stall():
            # Until the client closes the connection.
            await reader.read()
            return False
