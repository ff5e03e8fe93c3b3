"""A WebSocket on our own server: the upgrade, and messages in ASGI's words.

Until the application accepts, an upgrade is a request like any other and may be refused like one.
Pings are answered here, and a close is answered with a close. A client that breaks the protocol is
told so and disconnected. Messages wait within the connection's window until they are received.

Invariant: after a close frame of ours nothing more is sent; the connection ends when the client
has answered it, or soon after if it does not.
"""

import asyncio
import base64
import binascii
import hashlib
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from perdure.core import limits
from perdure.schema.errors import InvalidRequestError
from perdure.schema.value import Value
from perdure.server.http import message as http_message
from perdure.server.http import websocket_frame
from perdure.server.http.asgi import (
    Receive,
    Received,
    Scope,
    Send,
    Sent,
    SocketReceive,
    SocketSend,
)
from perdure.server.http.exchange import Exchange, ExchangeConnection
from perdure.server.http.websocket_frame import FrameReader, Opcode, ProtocolError

_GUID: Final = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_KEY_BYTES: Final = 16
_VERSION: Final = b"13"
_MESSAGE_OVERHEAD: Final = 64
"""Bytes that a waiting message costs beside its own: empty ones must not wait without end."""


def check_handshake(headers: Mapping[bytes, bytes], method: str) -> None:
    """Raises InvalidRequestError when this is no upgrade that we can answer."""
    if method != "GET" or headers.get(b"sec-websocket-version") != _VERSION:
        raise InvalidRequestError("A WebSocket is opened with GET and version 13")
    try:
        key = base64.b64decode(headers.get(b"sec-websocket-key", b""), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != _KEY_BYTES:
        raise InvalidRequestError("Sec-WebSocket-Key must be 16 bytes in base64")


class Socket:
    """An accepted WebSocket, as a handler sees it."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def receive(self) -> str | bytes | None:
        """The next message; None when the client is gone."""
        message = await self._receive()
        if message["type"] != "websocket.receive":
            return None
        return _content(message)

    async def send(self, message: str | bytes) -> None:
        if isinstance(message, str):
            await self._send({"type": "websocket.send", "text": message})
        else:
            await self._send({"type": "websocket.send", "bytes": message})

    async def ping(self) -> None:
        """So that whatever lies between us and the client sees that we are there."""
        await self._send({"type": "websocket.ping"})

    async def close(self, code: int, reason: str = "") -> None:
        await self._send({"type": "websocket.close", "code": code, "reason": reason})


class Upgrade(Value):
    """An answer that is a conversation. `run` has it, and closes the socket."""

    run: Callable[[Socket], Awaitable[None]]

    async def serve(self, receive: Receive, send: Send) -> None:
        await receive()  # that the client wants to connect
        await send({"type": "websocket.accept"})
        await self.run(Socket(receive, send))


class WebSocketExchange(Exchange):
    """The request of an upgrade, and everything after it."""

    def __init__(self, wire: ExchangeConnection, scope: Scope) -> None:
        super().__init__(wire, scope, expects_continue=False)
        self._socket_wire = wire
        self._reader = FrameReader(bytes_max=limits.SOCKET_MESSAGE_BYTES_MAX)
        self._early = bytearray()
        self._messages: deque[Received] = deque([{"type": "websocket.connect"}])
        self._waiting_bytes = 0
        self._arrived = asyncio.Event()
        self._accepted = False
        self._closing = False
        self._gone = asyncio.Event()

    @property
    def buffered(self) -> int:
        return self._waiting_bytes + len(self._early)

    def feed(self, data: bytes) -> None:
        """Bytes after the head of the request."""
        if self._gone.is_set():
            return
        if not self._accepted:
            self._early += data
            return
        try:
            for message in self._reader.feed(data):
                self._take(message)
        except ProtocolError as error:
            self._say_close(error.code, error.reason)
            # What it still sends is read and dropped, so that it comes to read why.
            self.request_complete = False
            self._leave(error.code)

    def lose(self) -> None:
        super().lose()
        self._leave(1006)

    async def receive(self) -> Received:
        while not self._messages:
            self._arrived.clear()
            await self._arrived.wait()
        message = self._messages.popleft()
        if message["type"] == "websocket.receive":
            self._waiting_bytes -= _cost(message)
            self._socket_wire.body_taken()
        return message

    async def send(self, message: Sent) -> None:
        match message["type"]:
            case "websocket.accept":
                self._accept()
            case "websocket.send":
                await self._say(message)
            case "websocket.ping":
                self._ping()
            case "websocket.close":
                await self._close(message["code"], message["reason"])
            case _:
                await super().send(message)

    def _accept(self) -> None:
        assert not self.response_started, "accepted after an answer"
        self.response_started = self.streams = self._accepted = True
        headers = dict(self.scope["headers"])
        digest = hashlib.sha1(headers[b"sec-websocket-key"] + _GUID, usedforsecurity=False)
        answer = (
            (b"upgrade", b"websocket"),
            (b"connection", b"Upgrade"),
            (b"sec-websocket-accept", base64.b64encode(digest.digest())),
        )
        date = self._socket_wire.date
        self._socket_wire.write(http_message.head(101, answer, date=date, framing=b""))
        early, self._early = bytes(self._early), bytearray()
        self.feed(early)

    async def _say(self, message: SocketSend) -> None:
        if self._closing or self._gone.is_set():
            return
        content = _content(message)
        if isinstance(content, bytes):
            data = websocket_frame.frame(Opcode.BINARY, content)
        else:
            data = websocket_frame.frame(Opcode.TEXT, content.encode("utf-8", "replace"))
        self._socket_wire.write(data)
        await self._socket_wire.writable()

    def _ping(self) -> None:
        if not self._closing and not self._gone.is_set():
            self._socket_wire.write(websocket_frame.frame(Opcode.PING, b""))

    async def _close(self, code: int, reason: str) -> None:
        self._say_close(code, reason)
        try:
            async with asyncio.timeout(limits.SOCKET_CLOSE_SECONDS_MAX):
                await self._gone.wait()
        except TimeoutError:
            self._leave(code)
        if not self.response_complete:
            self.response_complete = True
            self._socket_wire.finished(self)

    def _say_close(self, code: int, reason: str) -> None:
        if not self._closing and not self._gone.is_set():
            self._closing = True
            self._socket_wire.write(websocket_frame.close_frame(code, reason))

    def _take(self, message: websocket_frame.Message) -> None:
        match message.opcode:
            case Opcode.PING if not self._closing:
                self._socket_wire.write(websocket_frame.frame(Opcode.PONG, message.data))
            case Opcode.CLOSE:
                code = websocket_frame.close_code(message.data)
                told = websocket_frame.NORMAL if code == websocket_frame.NO_STATUS else code
                self._say_close(told, "")
                self._leave(code)
            case Opcode.TEXT:
                self._queue({"type": "websocket.receive", "text": message.data.decode()})
            case Opcode.BINARY:
                self._queue({"type": "websocket.receive", "bytes": message.data})
            case _:
                return

    def _queue(self, message: SocketReceive) -> None:
        # What comes after our close is read for the client's answer only.
        if not self._closing:
            self._waiting_bytes += _cost(message)
            self._messages.append(message)
            self._arrived.set()

    def _leave(self, code: int) -> None:
        """Nothing more will come."""
        if not self._gone.is_set():
            self._gone.set()
            self._messages.append({"type": "websocket.disconnect", "code": code})
            self._arrived.set()


def _content(message: SocketReceive | SocketSend) -> str | bytes:
    text = message.get("text")
    return message.get("bytes", b"") if text is None else text


def _cost(message: SocketReceive) -> int:
    return len(_content(message)) + _MESSAGE_OVERHEAD
