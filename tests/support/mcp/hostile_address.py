"""An MCP server over HTTP that does not behave: one way of being wrong for each address."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

Answer = tuple[int, str, bytes]
_JSON = "application/json"


class HostileAddress:
    def __init__(self, mode: str) -> None:
        self.mode = mode
        self.port = 0
        self.elsewhere = ""
        """Where it redirects to."""
        self.sessions = 0
        self.heard: list[tuple[str, dict[str, str]]] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def answer(self, message: JsonObject, headers: dict[str, str]) -> Answer:
        self.heard.append((message["method"], headers))
        match self.mode:
            case "html":
                return 200, "text/html", b"<html>Welcome</html>"
            case "redirect":
                return 307, f"text/plain\r\nlocation: {self.elsewhere}", b""
            case "login":
                return 401, "text/plain", b""
            case "broken":
                return 500, "text/plain", b"broken"
            case "garbage":
                return 200, _JSON, b"{" * 50_000
            case _:
                return self._speak(message, headers)

    def _speak(self, message: JsonObject, headers: dict[str, str]) -> Answer:
        match message["method"]:
            case "initialize":
                self.sessions += 1
                version = "1999-01-01" if self.mode == "old" else "2025-11-25"
                greeting: JsonObject = {
                    "protocolVersion": version,
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "it", "version": "1"},
                }
                kind = f"{_JSON}\r\nmcp-session-id: s{self.sessions}"
                return 200, kind, _result(message, greeting)
            case "tools/list":
                return 200, _JSON, _result(message, {"tools": self._tools()})
            case "tools/call" if self.mode == "expires" and headers["mcp-session-id"] == "s1":
                return 404, "text/plain", b""
            case "tools/call":
                content: JsonValue = [{"type": "text", "text": "ok"}]
                return 200, _JSON, _result(message, {"content": content})
            case _ if "id" in message:
                error: JsonObject = {"code": -32601, "message": "no such method"}
                refused: JsonObject = {"jsonrpc": "2.0", "id": message["id"], "error": error}
                return 200, _JSON, codec.encode(refused)
            case _:
                return 202, "text/plain", b""

    def _tools(self) -> list[JsonValue]:
        schema: JsonObject = {"type": "object"}
        if self.mode == "loops":
            schema = {
                "type": "object",
                "properties": {"a": {"$ref": "#/$defs/a"}},
                "$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}},
            }
        if self.mode == "heavy":
            schema = {"type": "object", "description": "x" * 15_000_000}
        names = ["say"]
        if self.mode == "names":
            # Look-alikes of letters, what directs text, and a name that another tool has.
            names = ["say", "s\u0430y", "say\u202e", "say\u200b", "", "x" * 5_000]
        return [{"name": name, "description": "It.", "inputSchema": schema} for name in names]


def _result(message: JsonObject, result: JsonObject) -> bytes:
    return codec.encode({"jsonrpc": "2.0", "id": message["id"], "result": result})


@asynccontextmanager
async def hostile_address(mode: str) -> AsyncGenerator[HostileAddress]:
    server = HostileAddress(mode)
    tasks: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            while await _serve(server, reader, writer):
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


async def _serve(
    server: HostileAddress, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> bool:
    head = (await reader.readuntil(b"\r\n\r\n")).decode().rstrip().split("\r\n")
    headers = {name.lower(): value for name, value in (line.split(": ", 1) for line in head[1:])}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    status, kind, data = 405, "text/plain", b""
    if head[0].startswith("POST "):
        status, kind, data = server.answer(codec.decode_any(body), headers)
    lines = (f"HTTP/1.1 {status} Said", f"content-type: {kind}", f"content-length: {len(data)}")
    writer.write("\r\n".join((*lines, "", "")).encode() + data)
    await writer.drain()
    return True
