"""A remote MCP server that answers only after a login, and says where to log in.

It speaks the protocol of 2025 with plain JSON answers. Tokens are those of the authorization server
that the tests of logins use (tests.support.authorization_server).
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from tests.support.authorization_server import CLIENT, AuthorizationServer

_TOOL: JsonObject = {"name": "say", "description": "Say.", "inputSchema": {"type": "object"}}


class ProtectedServer:
    def __init__(self, logins: AuthorizationServer) -> None:
        self.logins = logins
        self.port = 0
        self.registered: list[JsonObject] = []
        self.secret_ways: list[JsonValue] | None = None
        """How the token server takes the secret of a client; None says nothing."""
        self.revoked: set[str] = set()
        """Tokens that do not work any more."""
        self.seen: list[str] = []
        """The `Authorization` of each request, empty without one."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def answer(
        self, method: str, path: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, JsonObject | None]:
        origin = f"http://127.0.0.1:{self.port}"
        match path:
            case "/.well-known/oauth-protected-resource/mcp":
                return 200, {"resource": self.url, "authorization_servers": [origin]}
            case "/.well-known/oauth-authorization-server":
                ways: JsonObject = {}
                if self.secret_ways is not None:
                    ways = {"token_endpoint_auth_methods_supported": self.secret_ways}
                return 200, {
                    **ways,
                    "issuer": origin,
                    "authorization_endpoint": f"{self.logins.url}/authorize",
                    "token_endpoint": f"{self.logins.url}/token",
                    "registration_endpoint": f"{origin}/register",
                    "scopes_supported": ["tools"],
                }
            case "/register":
                self.registered.append(codec.decode_any(body))
                return 201, {"client_id": CLIENT}
            case "/mcp":
                return self._mcp(method, headers, body)
            case _:
                return 404, {}

    def _mcp(
        self, method: str, headers: dict[str, str], body: bytes
    ) -> tuple[int, JsonObject | None]:
        given = headers.get("authorization", "")
        self.seen.append(given)
        token = given.removeprefix("Bearer ")
        if token not in self.logins.issued or token in self.revoked or "access" not in token:
            return 401, {}
        if method != "POST":
            return 405, {}
        asked: dict[str, Any] = codec.decode_any(body)
        if "id" not in asked:
            return 202, None
        return 200, {"jsonrpc": "2.0", "id": asked["id"], **_reply(asked)}


def _reply(asked: dict[str, Any]) -> JsonObject:
    match asked["method"]:
        case "initialize":
            return {
                "result": {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "protected", "version": "1"},
                }
            }
        case "tools/list":
            return {"result": {"tools": [_TOOL]}}
        case "tools/call":
            return {"result": {"content": [{"type": "text", "text": "said"}]}}
        case _:
            return {"error": {"code": -32601, "message": "no such method"}}


@asynccontextmanager
async def protected_server(logins: AuthorizationServer) -> AsyncGenerator[ProtectedServer]:
    server = ProtectedServer(logins)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while True:
                await _serve(server, reader, writer)
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


async def _serve(
    server: ProtectedServer, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = head[0].split(" ")
    status, answer = server.answer(method, path, headers, body)
    data = b"" if answer is None else codec.encode(answer)
    lines = [f"HTTP/1.1 {status} Said", f"content-length: {len(data)}"]
    lines.append("content-type: application/json")
    if status == 401:
        metadata = f"http://127.0.0.1:{server.port}/.well-known/oauth-protected-resource/mcp"
        lines.append(f'www-authenticate: Bearer resource_metadata="{metadata}"')
    writer.write("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
    await writer.drain()
