"""An editor in memory: it speaks to the agent in lines, and checks each line that it gets."""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Final

from perdure.acp.server import EditorServer, OpenClient
from perdure.acp.wire.line_splitter import LongLine
from perdure.schema.codec import JsonObject, JsonValue
from tests.clients.acp.published_schema import PublishedSchema

PATIENCE_SECONDS: Final = 10
ALL_FEATURES: Final[JsonObject] = {
    "elicitation": {"form": {}},
    "session": {"notices": {}, "compaction": {}},
}

Reply = Callable[[JsonObject], JsonValue]


class AgentError(Exception):
    def __init__(self, error: JsonObject) -> None:
        super().__init__(error["message"])
        self.code = error["code"]


class Editor:
    """Implements rpc.LineStream."""

    def __init__(self, schema: PublishedSchema) -> None:
        self.schema = schema
        self.updates: list[JsonObject] = []
        """What was told, each with its `sessionId` and the fields of the update."""
        self.asked: list[JsonObject] = []
        """Requests of the agent: method, params."""
        self.taken_back: list[int] = []
        self.errors: list[JsonObject] = []
        """Errors that answer no request."""
        self.replies: dict[str, Reply] = {}
        self._lines: asyncio.Queue[bytes] = asyncio.Queue()
        self._answers: dict[JsonValue, tuple[str, asyncio.Future[JsonValue]]] = {}
        self._changed = asyncio.Condition()
        self._last_id = 0

    # ---- the stream -----------------------------------------------------------------------------

    async def lines(self) -> AsyncGenerator[bytes | LongLine]:
        while line := await self._lines.get():
            yield line

    async def write(self, line: bytes) -> None:
        assert b"\n" not in line
        message = json.loads(line)
        assert message["jsonrpc"] == "2.0"
        if "method" in message:
            await self._hear(message)
        else:
            self._take_answer(message)
        async with self._changed:
            self._changed.notify_all()

    # ---- what an editor does --------------------------------------------------------------------

    def say(self, line: bytes) -> None:
        """Send a line, whatever it is."""
        self._lines.put_nowait(line)

    def send(self, **message: JsonValue) -> None:
        self.say(json.dumps({"jsonrpc": "2.0", **message}).encode())

    def begin(self, method: str, **params: JsonValue) -> "asyncio.Future[JsonValue]":
        """Send a request; its answer comes with the future."""
        self._last_id += 1
        future = asyncio.get_running_loop().create_future()
        self._answers[self._last_id] = (method, future)
        self.send(id=self._last_id, method=method, params=params)
        return future

    async def ask(self, method: str, **params: JsonValue) -> JsonObject:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.begin(method, **params)

    def notify(self, method: str, **params: JsonValue) -> None:
        self.send(method=method, params=params)

    async def start(self, **capabilities: JsonValue) -> JsonObject:
        return await self.ask("initialize", protocolVersion=1, clientCapabilities=capabilities)

    async def open(self, directory: str, **params: JsonValue) -> str:
        opened = await self.ask("session/new", cwd=directory, mcpServers=[], **params)
        return str(opened["sessionId"])

    async def prompt(self, session: str, text: str) -> JsonObject:
        blocks = [{"type": "text", "text": text}]
        return await self.ask("session/prompt", sessionId=session, prompt=blocks)

    def close(self) -> None:
        self._lines.put_nowait(b"")

    # ---- what it sees ---------------------------------------------------------------------------

    def told(self, kind: str) -> list[JsonObject]:
        return [update for update in self.updates if update["sessionUpdate"] == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(update["content"]["text"] for update in self.told(kind))

    def calls(self) -> dict[str, JsonObject]:
        """The tool calls as an editor shows them: each field as it was last told."""
        found: dict[str, JsonObject] = {}
        for update in self.updates:
            if update["sessionUpdate"] in {"tool_call", "tool_call_update"}:
                found.setdefault(update["toolCallId"], {}).update(update)
        return found

    async def until(self, is_true: Callable[[], JsonValue]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS), self._changed:
            await self._changed.wait_for(lambda: bool(is_true()))

    async def _hear(self, message: JsonObject) -> None:
        method, params = message["method"], message["params"]
        if method == "$/cancel_request":
            self.taken_back.append(params["requestId"])
            return
        self.schema.check_sent(method, params)
        if "id" not in message:
            self.updates.append({"sessionId": params["sessionId"], **params["update"]})
            return
        self.asked.append({"id": message["id"], "method": method, "params": params})
        if reply := self.replies.get(method):
            self.send(id=message["id"], result=reply(message["params"]))

    def _take_answer(self, message: JsonObject) -> None:
        if "error" in message:
            self.schema.check_error(message["error"])
        method, future = self._answers.pop(message["id"], ("", None))
        if future is None:
            self.errors.append(message)
        elif "error" in message:
            future.set_exception(AgentError(message["error"]))
        else:
            self.schema.check_answer(method, message["result"])
            if not future.done():
                future.set_result(message["result"])


def select(option: str) -> JsonObject:
    """The answer to a permission request."""
    return {"outcome": {"outcome": "selected", "optionId": option}}


@asynccontextmanager
async def editing(schema: PublishedSchema, open_client: OpenClient) -> AsyncGenerator[Editor]:
    """An editor whose agent asks this client; both end with the scope."""
    editor = Editor(schema)
    server = EditorServer(editor, open_client)
    serving = asyncio.create_task(server.serve())
    try:
        yield editor
    finally:
        editor.close()
        async with asyncio.timeout(PATIENCE_SECONDS):
            with suppress(asyncio.CancelledError):
                await serving
