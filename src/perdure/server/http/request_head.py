"""The head of a request while it arrives: its target and headers, within a limit."""

import asyncio
from typing import Final

from httptools import HttpRequestParser

from perdure.core import limits
from perdure.protocol.query import unquote
from perdure.server.http.asgi import Header, Scope

_ASGI: Final = {"version": "3.0", "spec_version": "2.4"}


class RequestHead:
    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._size = 0
        self._url = b""
        self._headers: list[Header] = []

    @property
    def is_too_large(self) -> bool:
        return self._size > self._bytes_max

    def add_url(self, url: bytes) -> None:
        self._size += len(url)
        if not self.is_too_large:
            self._url += url

    def add_header(self, name: bytes, value: bytes) -> None:
        self._size += len(name) + len(value) + limits.REQUEST_HEADER_OVERHEAD
        if not self.is_too_large:
            self._headers.append((name.lower(), value))

    @property
    def expects_continue(self) -> bool:
        return any(
            name == b"expect" and value.lower() == b"100-continue" for name, value in self._headers
        )

    def scope(self, parser: HttpRequestParser, transport: asyncio.BaseTransport) -> Scope:
        """The complete head as ASGI has it."""
        target = self._url
        if not target.startswith((b"/", b"*")):
            target = target.partition(b"://")[2]
            target = target[target.find(b"/") :] if b"/" in target else b"/"
        raw_path, _, query_string = target.partition(b"?")
        websocket = parser.should_upgrade() and (b"upgrade", b"websocket") in {
            (name, value.lower()) for name, value in self._headers
        }
        return {
            "type": "websocket" if websocket else "http",
            "asgi": _ASGI,
            "http_version": parser.get_http_version(),
            "method": parser.get_method().decode("ascii"),
            "scheme": "ws" if websocket else "http",
            "path": unquote(raw_path),
            "raw_path": raw_path,
            "query_string": query_string,
            "root_path": "",
            "headers": self._headers,
            "client": transport.get_extra_info("peername"),
            "server": transport.get_extra_info("sockname"),
        }
