"""The address on this machine that a browser comes back to after a login.

A listener for one attempt: it answers GET on its one path with a page, hands over the parameters of
the query, and answers everything else with an error. What the parameters mean is not known here.

Invariant: only requests that name this listener as their host are heard (a page elsewhere could
otherwise reach it through a name of its own), and nothing of a request is shown in an answer.
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
    """The address cannot be listened on; the message says which and why."""


class Page(Value):
    """What the browser shows: plain text."""

    status: int
    text: str


Answer = Callable[[Mapping[str, str]], Awaitable[Page]]


class OAuthCallback:
    """Made by `listen`."""

    def __init__(self, server: asyncio.Server, url: str) -> None:
        self._server = server
        self.url = url

    def close(self) -> None:
        """Stop listening. An answer under way is still written."""
        self._server.close()


async def listen(redirect_url: str | None, answer: Answer) -> OAuthCallback:
    """Listen at `redirect_url`, or at a free port; raises CallbackError."""
    split = urlsplit(redirect_url or f"http://{DEFAULT_HOST}:0{DEFAULT_PATH}")
    host, path = split.hostname or DEFAULT_HOST, split.path or "/"
    heard = _Heard(path=path, answer=answer)
    # The name would mean two addresses, and a listener on one of them is enough for a browser.
    address = DEFAULT_HOST if host == "localhost" else host
    try:
        server = await asyncio.start_server(
            heard.connected, address, split.port or 0, limit=limits.CALLBACK_HEAD_BYTES_MAX
        )
    except OSError as error:
        raise CallbackError(
            f"Cannot listen on port {split.port} of this machine: {error.strerror}"
        ) from error
    port = server.sockets[0].getsockname()[1]
    heard.authorities = _authorities(port)
    shown = f"[{host}]" if ":" in host else host
    return OAuthCallback(server, redirect_url or f"http://{shown}:{port}{path}")


class _Heard:
    def __init__(self, *, path: str, answer: Answer) -> None:
        self._path = path
        self._answer = answer
        self._open = 0
        self.authorities = frozenset[str]()

    async def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open += 1
        try:
            if self._open <= limits.CALLBACK_CONNECTIONS_MAX:
                async with asyncio.timeout(limits.CALLBACK_SECONDS_MAX):
                    head = await reader.readuntil(b"\r\n\r\n")
                page = await self._page(head.decode("latin-1"))
                async with asyncio.timeout(limits.CALLBACK_SECONDS_MAX):
                    writer.write(_written(page))
                    await writer.drain()
        except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            # Not a browser, or one that went away: there is nobody to answer.
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
            return Page(400, "This is not a request that can be answered.")
        if hosts[0].lower() not in self.authorities:
            return Page(400, "This address answers to its own name only.")
        path, _, query = target.partition("?")
        if path != self._path:
            return Page(404, "There is nothing here.")
        if method != "GET":
            return Page(405, "Only GET is answered here.")
        return await self._answer(dict(parse_qsl(query, keep_blank_values=True)))


def _authorities(port: int) -> frozenset[str]:
    return frozenset(f"{name}:{port}" for name in loopback.AUTHORITIES)


def _written(page: Page) -> bytes:
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
