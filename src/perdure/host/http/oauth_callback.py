"""Local HTTP listener for the OAuth redirect after a login in a browser.

It serves one login attempt: GET on its path passes the query parameters to a callback and shows
the page that it returns; everything else is an error.

Invariant: only requests whose Host header names this listener are accepted, which prevents DNS
rebinding, and no part of a request is shown in an answer.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from perdure.core import limits
from perdure.net import loopback
from perdure.schema.value import Value

DEFAULT_PATH: Final = "/callback"
DEFAULT_HOST: Final = "127.0.0.1"
_REASONS: Final = {200: "OK", 400: "Bad Request", 404: "Not Found", 405: "Method Not Allowed"}


class CallbackError(Exception):
    """Cannot listen on the address; the message says which and why."""


class Page(Value):
    """The page that the browser shows, as plain text."""

    status: int
    text: str


Answer = Callable[[Mapping[str, str]], Awaitable[Page]]


class OAuthCallback:
    """An open listener, made by `listen`."""

    def __init__(self, server: asyncio.Server, url: str) -> None:
        self._server = server
        self.url = url

    def close(self) -> None:
        """Stop listening. An answer in progress is still sent."""
        self._server.close()


async def listen(redirect_url: str | None, answer: Answer) -> OAuthCallback:
    """Listen at `redirect_url`, or at a free port. Raises CallbackError."""
    split = urlsplit(redirect_url or f"http://{DEFAULT_HOST}:0{DEFAULT_PATH}")
    host, path = split.hostname or DEFAULT_HOST, split.path or "/"
    handler = _CallbackHandler(path=path, answer=answer)
    # `localhost` has two addresses; listening on one is enough for a browser.
    address = DEFAULT_HOST if host == "localhost" else host
    try:
        server = await asyncio.start_server(
            handler.handle, address, split.port or 0, limit=limits.CALLBACK_HEAD_BYTES_MAX
        )
    except OSError as error:
        raise CallbackError(
            f"Cannot listen on port {split.port} of this machine: {error.strerror}"
        ) from error
    port = server.sockets[0].getsockname()[1]
    handler.authorities = _authorities(port)
    bracketed = f"[{host}]" if ":" in host else host
    return OAuthCallback(server, redirect_url or f"http://{bracketed}:{port}{path}")


class _CallbackHandler:
    def __init__(self, *, path: str, answer: Answer) -> None:
        self._path = path
        self._answer = answer
        self._open = 0
        self.authorities = frozenset[str]()

    async def handle(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= limits.CALLBACK_CONNECTIONS_MAX:
                async with asyncio.timeout(limits.CALLBACK_SECONDS_MAX):
                    head = await reader.readuntil(b"\r\n\r\n")
                page = await self._page(head.decode("latin-1"))
                async with asyncio.timeout(limits.CALLBACK_SECONDS_MAX):
                    writer.write(_render(page))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # Not a browser, or one that disconnected.
            pass
        finally:
            self._open -= 1
            writer.close()
            with suppress(OSError):
                await writer.wait_closed()

    async def _page(self, head: str) -> Page:
        first, *lines = head.split("\r\n")
        method, _, rest = first.partition(" ")
        target, _, version = rest.partition(" ")
        hosts = [
            value.strip()
            for name, _, value in (line.partition(":") for line in lines)
            if name.strip().lower() == "host"
        ]
        if not version.startswith("HTTP/1.") or hosts[:1] == [] or len(hosts) > 1:
            return Page(400, "This request is not valid HTTP.")
        if hosts[0].lower() not in self.authorities:
            return Page(400, "The Host header does not name this address.")
        path, _, query = target.partition("?")
        if path != self._path:
            return Page(404, "This page does not exist.")
        if method != "GET":
            return Page(405, "Only GET is supported.")
        return await self._answer(dict(parse_qsl(query, keep_blank_values=True)))


def _authorities(port: int) -> frozenset[str]:
    return frozenset(f"{name}:{port}" for name in loopback.AUTHORITIES)


def _render(page: Page) -> bytes:
    import html

    body = (
        "<!doctype html><meta charset=utf-8><title>Perdure</title>"
        f"<p>{html.escape(page.text)}</p>\n"
    ).encode()
    head = (
        f"HTTP/1.1 {page.status} {_REASONS[page.status]}\r\n"
        f"content-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "cache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
        "content-security-policy: default-src 'none'\r\nx-content-type-options: nosniff\r\n"
        "connection: close\r\n\r\n"
    )
    return head.encode() + body
