"""An authorization server on the loopback address: codes, PKCE, tokens, and refusals on demand.

It keeps to the standard where it matters here: a code works once and only with its verifier, and a
refresh token is replaced by every use. Whatever it was asked is kept for the test.
"""

import asyncio
import base64
import hashlib
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from perdure.schema import codec
from perdure.schema.codec import JsonObject

PATIENCE_SECONDS: Final = 10
CLIENT: Final = "perdure-test"


@dataclass(slots=True)
class _Grant:
    challenge: str
    redirect: str


@dataclass(slots=True)
class AuthorizationServer:
    port: int = 0
    expires_in: int = 3600
    status: int = 200
    """Of every token answer; another one than 200 refuses with `error`."""
    error: str = "invalid_grant"
    rotates: bool = True
    hold: asyncio.Event | None = None
    """If set, no token answer goes out before it is."""
    asked: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """Every token request."""
    headers: list[dict[str, str]] = field(default_factory=list[dict[str, str]])
    """Of every token request."""
    issued: list[str] = field(default_factory=list[str])
    """Every code and token that was ever given out: secrets, for tests that look for leaks."""
    valid: set[str] = field(default_factory=set[str])
    """Refresh tokens that work."""
    grants: dict[str, _Grant] = field(default_factory=dict[str, _Grant])
    arrived: asyncio.Condition = field(default_factory=asyncio.Condition)
    device_codes: dict[str, str | None] = field(default_factory=dict[str, "str | None"])
    """Device codes, and with which error a question about one is refused; None: it is granted."""
    refuses_with_200: bool = False
    """Whether a refusal of a device code comes with status 200, as at GitHub."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def method(self, **fields: object) -> JsonObject:
        """Its entry in a configuration."""
        return {
            "label": "Log in",
            "authorize_url": f"{self.url}/authorize",
            "token_url": f"{self.url}/token",
            "client_id": CLIENT,
            "scopes": ["models"],
            **fields,
        }

    def device_method(self, **fields: object) -> JsonObject:
        """The entry of its login by device code."""
        return {
            "token_url": f"{self.url}/token",
            "device_url": f"{self.url}/device",
            "client_id": CLIENT,
            "scopes": ["models"],
            **fields,
        }

    def device(self, form: dict[str, str]) -> tuple[int, JsonObject]:
        """The answer of the device endpoint."""
        self.asked.append(form)
        code = self._secret("device")
        self.device_codes[code] = "authorization_pending"
        return 200, {
            "device_code": code,
            "user_code": "WDJB-MJHT",
            "verification_uri": f"{self.url}/activate",
            "expires_in": 300,
            "interval": 5,
        }

    def grant(self, authorize_url: str) -> tuple[str, str]:
        """What a person who agrees brings about: the code, and where the browser goes next."""
        asked = dict(parse_qsl(urlsplit(authorize_url).query))
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        code = self._secret("code")
        self.grants[code] = _Grant(asked["code_challenge"], asked["redirect_uri"])
        answer = urlencode({"code": code, "state": asked["state"]})
        return code, f"{asked['redirect_uri']}?{answer}"

    def tokens(self) -> JsonObject:
        refresh = self._secret("refresh")
        if self.rotates:
            self.valid.clear()
        self.valid.add(refresh)
        return {
            "access_token": self._secret("access"),
            "refresh_token": refresh,
            "token_type": "Bearer",
            "expires_in": self.expires_in,
        }

    @property
    def renewals(self) -> int:
        return sum(asked["grant_type"] == "refresh_token" for asked in self.asked)

    async def until_asked(self, count: int) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), self.arrived:
            await self.arrived.wait_for(lambda: len(self.asked) >= count)

    async def answer(self, form: dict[str, str]) -> tuple[int, JsonObject]:
        self.asked.append(form)
        async with self.arrived:
            self.arrived.notify_all()
        if self.hold is not None:
            await self.hold.wait()
        if self.status != 200:
            told = f"refused {form}"
            return self.status, {"error": self.error, "error_description": told}
        if form["grant_type"] == "urn:ietf:params:oauth:grant-type:device_code":
            error = self.device_codes.get(form["device_code"], "invalid_grant")
            if error is None:
                return 200, self.tokens()
            return 200 if self.refuses_with_200 else 400, {"error": error}
        if form["grant_type"] == "refresh_token":
            works = form["refresh_token"] in self.valid
        else:
            works = self._redeemed(form)
        return (200, self.tokens()) if works else (400, {"error": "invalid_grant"})

    def _redeemed(self, form: dict[str, str]) -> bool:
        grant = self.grants.pop(form["code"], None)
        if grant is None or form["client_id"] != CLIENT:
            return False
        digest = hashlib.sha256(form["code_verifier"].encode()).digest()
        challenge = base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
        return challenge == grant.challenge and form["redirect_uri"] == grant.redirect

    def _secret(self, kind: str) -> str:
        made = f"canary-{kind}-{len(self.issued)}"
        self.issued.append(made)
        return made


@asynccontextmanager
async def authorization_server() -> AsyncGenerator[AuthorizationServer]:
    server = AuthorizationServer()
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while await _served(server, reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            # Cancelled only below, when the test is over and nothing awaits this task.
            pass
        finally:
            writer.close()

    listening = await asyncio.start_server(connected, "127.0.0.1", 0)
    async with listening:
        server.port = listening.sockets[0].getsockname()[1]
        yield server
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _served(
    server: AuthorizationServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    path = head[0].split(" ")[1]
    assert head[0].startswith("POST ")
    assert path in ("/token", "/device")
    assert headers["content-type"] == "application/x-www-form-urlencoded"
    form = dict(parse_qsl(body.decode()))
    server.headers.append(headers)
    status, answer = server.device(form) if path == "/device" else await server.answer(form)
    data = codec.encode(answer)
    writer.write(
        f"HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\n"
        f"content-length: {len(data)}\r\n\r\n".encode()
        + data
    )
    await writer.drain()
    return True


async def browse(url: str, *, host: str | None = None, method: str = "GET") -> tuple[int, str]:
    """What a browser gets at an address of this machine: the status and the page."""
    split = urlsplit(url)
    async with asyncio.timeout(PATIENCE_SECONDS):
        reader, writer = await asyncio.open_connection("127.0.0.1", split.port)
        try:
            target = f"{split.path}?{split.query}" if split.query else split.path
            named = host or split.netloc
            writer.write(f"{method} {target} HTTP/1.1\r\nhost: {named}\r\n\r\n".encode())
            answer = (await reader.read()).decode()
        finally:
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)
    head, _, page = answer.partition("\r\n\r\n")
    return int(head.split(" ")[1]), page
