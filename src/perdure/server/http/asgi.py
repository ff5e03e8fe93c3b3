"""The types of ASGI 3, as far as this server and this app use it.

`websocket.ping` is this server's own: ASGI has no message for it.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Literal, NotRequired, TypedDict

Header = tuple[bytes, bytes]


class Scope(TypedDict):
    type: Literal["http", "websocket"]
    asgi: dict[str, str]
    http_version: str
    method: str
    scheme: str
    path: str
    raw_path: bytes
    query_string: bytes
    root_path: str
    headers: list[Header]
    client: tuple[object, ...] | None
    server: tuple[object, ...] | None


class HttpRequest(TypedDict):
    type: Literal["http.request"]
    body: bytes
    more_body: bool


class HttpDisconnect(TypedDict):
    type: Literal["http.disconnect"]


class SocketConnect(TypedDict):
    type: Literal["websocket.connect"]


class SocketReceive(TypedDict):
    type: Literal["websocket.receive"]
    text: NotRequired[str]
    bytes: NotRequired[bytes]


class SocketDisconnect(TypedDict):
    type: Literal["websocket.disconnect"]
    code: int


class ResponseStart(TypedDict):
    type: Literal["http.response.start", "websocket.http.response.start"]
    status: int
    headers: Sequence[Header]


class ResponseBody(TypedDict):
    type: Literal["http.response.body", "websocket.http.response.body"]
    body: bytes
    more_body: NotRequired[bool]


class SocketAccept(TypedDict):
    type: Literal["websocket.accept"]


class SocketSend(TypedDict):
    type: Literal["websocket.send"]
    text: NotRequired[str]
    bytes: NotRequired[bytes]


class SocketPing(TypedDict):
    type: Literal["websocket.ping"]


class SocketClose(TypedDict):
    type: Literal["websocket.close"]
    code: int
    reason: str


Received = HttpRequest | HttpDisconnect | SocketConnect | SocketReceive | SocketDisconnect
Sent = ResponseStart | ResponseBody | SocketAccept | SocketSend | SocketPing | SocketClose
Receive = Callable[[], Awaitable[Received]]
Send = Callable[[Sent], Awaitable[None]]
Application = Callable[[Scope, Receive, Send], Awaitable[None]]
