"""The server: requests are answered each in a task of its own, until the input ends.

Invariant: a request is answered once, or never if its client cancelled it. Cancelling a call ends
the waiting and never the work of a Session.
"""

import asyncio
import itertools
import logging
from functools import partial
from typing import Final, Protocol

import msgspec

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.mcp_server import era as eras
from perdure.mcp_server import requests
from perdure.mcp_server.arguments import SHAPES, TOOLS
from perdure.mcp_server.calls import Asker, Calls, InputNeeded
from perdure.mcp_server.era import Era, UnsupportedVersionError
from perdure.mcp_server.lines import Lines
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue

logger = logging.getLogger(__name__)

_PARSE_ERROR: Final = -32700
_INVALID_REQUEST: Final = -32600
_NO_METHOD: Final = -32601
_INVALID_PARAMS: Final = -32602
_INTERNAL: Final = -32603
_TOO_MANY: Final = -32000
_UNSUPPORTED_VERSION: Final = -32022


class OpenCalls(Protocol):
    async def __call__(self) -> Calls:
        """The calls, once the Sessions can be reached."""
        ...


class _RequestError(Exception):
    def __init__(self, code: int, message: str, data: JsonObject | None = None) -> None:
        super().__init__(message)
        self.shown: JsonObject = {"code": code, "message": message}
        if data is not None:
            self.shown["data"] = data


class Server:
    def __init__(self, lines: Lines, calls: OpenCalls) -> None:
        self._lines = lines
        self._calls = calls
        self._handshake = Era(eras.HANDSHAKE_VERSIONS[0], elicits=False)
        self._open: dict[str | int, asyncio.Task[None]] = {}
        self._asked: dict[str, asyncio.Future[JsonObject]] = {}
        self._numbers = itertools.count(1)

    async def run(self) -> None:
        """Serve until the input ends. Raises BrokenPipeError when the output does."""
        async with asyncio.TaskGroup() as group:
            async for line in self._lines.read():
                await self._receive(line, group)
            for task in self._open.values():
                task.cancel()

    async def _receive(self, line: bytes | None, group: asyncio.TaskGroup) -> None:
        if line is not None and not line.strip():
            return
        try:
            message: JsonValue = None if line is None else codec.decode_any(line)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            message = None
        if message is None:
            most = limits.MCP_MESSAGE_BYTES_MAX
            why = "not JSON" if line is not None else f"a message has at most {most} bytes"
            await self._refuse(None, _RequestError(_PARSE_ERROR, f"Parse error: {why}"))
        elif not jsonc.is_object(message):
            await self._refuse(None, _RequestError(_INVALID_REQUEST, "A message is one object"))
        elif "method" in message:
            await self._begin(message, group)
        else:
            self._settle(message)

    async def _begin(self, message: JsonObject, group: asyncio.TaskGroup) -> None:
        number, method, params = message.get("id"), message["method"], message.get("params", {})
        if not isinstance(method, str) or not jsonc.is_object(params):
            await self._refuse(number, _RequestError(_INVALID_REQUEST, "Invalid request"))
        elif "id" not in message:
            if method == "notifications/cancelled":
                self._cancel(params.get("requestId"))
        elif not isinstance(number, str | int) or isinstance(number, bool) or number in self._open:
            await self._refuse(number, _RequestError(_INVALID_REQUEST, "The id is not a new one"))
        elif len(self._open) >= limits.MCP_SERVER_CALLS_MAX:
            await self._refuse(number, _RequestError(_TOO_MANY, "Too many calls are open"))
        else:
            task = group.create_task(
                self._answer(number, method, params), name=f"call {method[:50]}"
            )
            self._open[number] = task
            task.add_done_callback(partial(self._forget, number))

    def _forget(self, number: str | int, task: asyncio.Task[None]) -> None:
        if self._open.get(number) is task:
            del self._open[number]

    async def _answer(self, id: str | int, method: str, params: JsonObject) -> None:
        try:
            answer: JsonObject = {"result": await self._dispatch(method, params)}
        except _RequestError as error:
            answer = {"error": error.shown}
        except UnsupportedVersionError as error:
            refused = _RequestError(_UNSUPPORTED_VERSION, str(error), error.data)
            answer = {"error": refused.shown}
        except Exception:
            logger.exception("a call failed in an unexpected way")
            answer = {"error": _RequestError(_INTERNAL, "The call failed; the log says how").shown}
        # From now on it is answered, and the client may use the number again.
        self._open.pop(id, None)
        await self._send({"id": id, **answer})

    async def _dispatch(self, method: str, params: JsonObject) -> JsonObject:
        modern = eras.read_modern(params)
        era = modern or self._handshake
        match method:
            case "initialize" if modern is None:
                self._handshake = eras.shake_hands(params)
                return eras.greeting(self._handshake)
            case "server/discover" if modern is not None:
                return era.complete(eras.discovery(), cached=True)
            case "ping":
                return era.complete({})
            case "tools/list":
                return era.complete({"tools": list(TOOLS)}, cached=True)
            case "tools/call":
                return era.complete(await self._call(params, era))
            case _:
                raise _RequestError(_NO_METHOD, f"Method not found: {method[:100]}")

    async def _call(self, params: JsonObject, era: Era) -> JsonObject:
        name, given = params.get("name"), params.get("arguments", {})
        if not isinstance(name, str) or name not in SHAPES:
            raise _RequestError(_INVALID_PARAMS, f"Unknown tool: {str(name)[:100]}")
        calls = await self._calls()
        try:
            return await calls.call(
                name, given, _ProgressReports(self, params), self._asker(params, era)
            )
        except InputNeeded as needed:
            return {"resultType": "input_required", "inputRequests": needed.requests}

    def _asker(self, params: JsonObject, era: Era) -> Asker | None:
        if not era.elicits:
            return None
        if not era.is_modern:
            return _AskingNow(self, era)
        given: JsonValue = params.get("inputResponses")
        return _AskingByResult(given if jsonc.is_object(given) else {})

    async def ask(self, params: JsonObject) -> JsonObject:
        """Send a request to the client; its result, an empty one if it refuses."""
        number = f"perdure-{next(self._numbers)}"
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            await self._send({"id": number, "method": requests.ELICIT, "params": params})
            return await answer
        except asyncio.CancelledError:
            await asyncio.shield(self.notify("notifications/cancelled", {"requestId": number}))
            raise
        finally:
            del self._asked[number]

    async def notify(self, method: str, params: JsonObject) -> None:
        await self._send({"method": method, "params": params})

    def _settle(self, message: JsonObject) -> None:
        """An answer of the client to what it was asked."""
        number, result = message.get("id"), message.get("result")
        answer = self._asked.get(number) if isinstance(number, str) else None
        if answer is not None and not answer.done():
            answer.set_result(result if jsonc.is_object(result) else {})

    def _cancel(self, id: JsonValue) -> None:
        task = self._open.get(id) if isinstance(id, str | int) else None
        if task is not None:
            task.cancel()

    async def _refuse(self, id: JsonValue, error: _RequestError) -> None:
        shown = id if isinstance(id, str | int) and not isinstance(id, bool) else None
        await self._send({"id": shown, "error": error.shown})

    async def _send(self, message: JsonObject) -> None:
        await self._lines.write(codec.encode({"jsonrpc": "2.0", **message}))


class _ProgressReports:
    """Tells the client what a Session does, if the call asked for that."""

    def __init__(self, server: Server, params: JsonObject) -> None:
        meta: JsonValue = params.get("_meta")
        token: JsonValue = meta.get("progressToken") if jsonc.is_object(meta) else None
        self._token = token if isinstance(token, str | int) else None
        self._server = server
        self._count = 0

    async def __call__(self, message: str) -> None:
        if self._token is not None:
            self._count += 1
            told: JsonObject = {
                "progressToken": self._token,
                "progress": self._count,
                "message": message,
            }
            await self._server.notify("notifications/progress", told)


class _AskingNow:
    """The older era: the server sends a request, and the call goes on with its answer."""

    def __init__(self, server: Server, era: Era) -> None:
        self._server = server
        self._era = era

    async def ask(self, id: str, form: JsonObject) -> JsonObject:
        shown = form if self._era.has_modes else {k: form[k] for k in form if k != "mode"}
        return await self._server.ask(shown)


class _AskingByResult:
    """The newer era: the result says what is needed, and the client calls again with it."""

    def __init__(self, answers: JsonObject) -> None:
        self._answers = answers

    async def ask(self, id: str, form: JsonObject) -> JsonObject:
        answer = self._answers.get(id)
        if jsonc.is_object(answer):
            return answer
        raise InputNeeded({id: {"method": requests.ELICIT, "params": form}})
