"""A WebSocket on this server: the upgrade, and its messages as ASGI's.

Until the application accepts, an upgrade is a request like any other and may be refused like one.
Pings and closes are answered here. A client that breaks the protocol is told why and disconnected.
Messages are buffered within the connection's window until they are received.

Invariant: nothing is sent after the server's close frame; the connection ends when the client has
answered that frame, or soon after if it does not.
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
"""Bytes that a buffered message counts beside its own, so that empty ones are bounded too."""


def check_handshake(headers: Mapping[bytes, bytes], method: str) -> None:
    """Raises InvalidRequestError when this is not a handshake of version 13."""
    if method != "GET" or headers.get(b"sec-websocket-version") != _VERSION:
        raise InvalidRequestError("A WebSocket is opened with GET and version 13")
    try:
        key = base64.b64decode(headers.get(b"sec-websocket-key", b""), validate=True)
    except binascii.Error:
        key = b""
    if len(key) != _KEY_BYTES:
        raise InvalidRequestError("Sec-WebSocket-Key must be 16 bytes in base64")


class Socket:
    """An accepted WebSocket, as the application uses it."""

    def __init__(self, receive: Receive, send: Send) -> None:
        self._receive = receive
        self._send = send

    async def receive(self) -> str | bytes | None:
        """The next message; None when the client has disconnected."""
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
        """Send a ping, so that proxies on the way do not close an idle connection."""
        await self._send({"type": "websocket.ping"})

    async def close(self, code: int, reason: str = "") -> None:
        await self._send({"type": "websocket.close", "code": code, "reason": reason})


class Upgrade(Value):
    """An answer that accepts a WebSocket. `run` uses it and closes it."""

    run: Callable[[Socket], Awaitable[None]]

    async def serve(self, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        await send({"type": "websocket.accept"})
        await self.run(Socket(receive, send))


class WebSocketExchange(Exchange):
    """The request of an upgrade, and the messages after it."""

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
        self._owed_pong: bytes | None = None

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
            self._send_close(error.code, error.reason)
            # What it still sends is read and dropped, so that it gets to read the reason.
            self.request_complete = False
            self._end_input(error.code)

    def lose(self) -> None:
        super().lose()
        self._end_input(1006)

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
                await self._send_message(message)
            case "websocket.ping":
                self._ping()
            case "websocket.close":
                await self._close(message["code"], message["reason"])
            case _:
                await super().send(message)

    def _accept(self) -> None:
        assert not self.response_started, "accepted after an answer"
        self.status = 101
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

    async def _send_message(self, message: SocketSend) -> None:
        if self._closing or self._gone.is_set():
            return
        content = _content(message)
        if isinstance(content, bytes):
            data = websocket_frame.frame(Opcode.BINARY, content)
        else:
            data = websocket_frame.frame(Opcode.TEXT, content.encode("utf-8", "replace"))
        self._socket_wire.write(data)
        await self._socket_wire.writable()

    def resume_sending(self) -> None:
        """Answer the newest ping of those that came while the client was not reading."""
        data, self._owed_pong = self._owed_pong, None
        if data is not None and not self._closing:
            self._socket_wire.write(websocket_frame.frame(Opcode.PONG, data))

    def _ping(self) -> None:
        if self._socket_wire.is_writable and not self._closing and not self._gone.is_set():
            self._socket_wire.write(websocket_frame.frame(Opcode.PING, b""))

    async def _close(self, code: int, reason: str) -> None:
        self._send_close(code, reason)
        try:
            async with asyncio.timeout(limits.SOCKET_CLOSE_SECONDS_MAX):
                await self._gone.wait()
        except TimeoutError:
            self._end_input(code)
        if not self.response_complete:
            self.response_complete = True
            self._socket_wire.finished(self)

    def _send_close(self, code: int, reason: str) -> None:
        if not self._closing and not self._gone.is_set():
            self._closing = True
            self._socket_wire.write(websocket_frame.close_frame(code, reason))

    def _take(self, message: websocket_frame.Message) -> None:
        match message.opcode:
            case Opcode.PING:
                # A client that does not read is owed one answer (RFC 6455, 5.5.3), not a thousand.
                self._owed_pong = message.data
                if self._socket_wire.is_writable:
                    self.resume_sending()
            case Opcode.CLOSE:
                code = websocket_frame.close_code(message.data)
                told = websocket_frame.NORMAL if code == websocket_frame.NO_STATUS else code
                self._send_close(told, "")
                self._end_input(code)
            case Opcode.TEXT:
                self._queue({"type": "websocket.receive", "text": message.data.decode()})
            case Opcode.BINARY:
                self._queue({"type": "websocket.receive", "bytes": message.data})
            case _:
                return

    def _queue(self, message: SocketReceive) -> None:
        # After the server's close only the client's close is of interest.
        if not self._closing:
            self._waiting_bytes += _cost(message)
            self._messages.append(message)
            self._arrived.set()

    def _end_input(self, code: int) -> None:
        """End the input: no more messages will come."""
        if not self._gone.is_set():
            self._gone.set()
            self._messages.append({"type": "websocket.disconnect", "code": code})
            self._arrived.set()


def _content(message: SocketReceive | SocketSend) -> str | bytes:
    text = message.get("text")
    return message.get("bytes", b"") if text is None else text


def _cost(message: SocketReceive) -> int:
    return len(_content(message)) + _MESSAGE_OVERHEAD
