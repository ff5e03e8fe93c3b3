"""JSON-RPC 2.0 in both directions, one message on each line.

Requests run beside each other and are answered when they are done. Whatever a client sends gets an
answer if one is due, and never ends the connection: only its end does.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import aclosing, suppress
from functools import partial
from typing import Final, Protocol, TypeVar, cast

import msgspec

from perdure.acp.wire.line_splitter import LongLine
from perdure.acp.wire.rpc_error import (
    CANCELLED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    ErrorValue,
    RpcError,
)
from perdure.acp.wire.wire_value import object_of
from perdure.core.limits import ACP_LINE_BYTES_MAX, ACP_REQUESTS_MAX
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import State, Value

logger = logging.getLogger(__name__)

T = TypeVar("T")

_VERSION: Final = "2.0"
_CANCEL: Final = "$/cancel_request"
_TAKEN_BACK: Final = "The request was taken back"
_INLINE_BYTES_MAX: Final = 256 * 1024
"""Longer lines are decoded in a thread."""
_LAST_SECONDS_MAX: Final = 10.0
"""For requests that are in progress when the client closes its end."""

RequestId = None | int | str


class LineStream(Protocol):
    """The lines of a client, and the way back."""

    def lines(self) -> AsyncGenerator[bytes | LongLine]: ...
    async def write(self, line: bytes) -> None: ...


class Method(Value):
    """What answers one kind of request or notification."""

    handle: Callable[[JsonObject], Awaitable[object]]
    cancel: Callable[[JsonObject], Awaitable[object]] | None = None
    """What ends a request that the client takes back; without it the request is just stopped."""
    outlasts: bool = False
    """Whether it takes as long as the work that it asks for, and so is not waited for at the
    end."""


class Answered(Value):
    """An answer, and what is told once it is sent."""

    result: object
    then: Callable[[], Awaitable[None]]


FindMethod = Callable[[str], Awaitable[Method | None]]


class RemoteError(Exception):
    """The client answered a request of ours with an error."""


class _Running(State):
    task: "asyncio.Task[None]"
    params: JsonObject
    method: Method | None = None
    """Set when it is known, which may need the rest of the program to be loaded."""
    is_taken_back: bool = False


class Connection:
    def __init__(self, stream: LineStream, find_method: FindMethod) -> None:
        """`find_method` gives what answers a method, or None."""
        self._stream = stream
        self._find_method = find_method
        self._running: dict[RequestId, _Running] = {}
        self._notified: set[asyncio.Task[None]] = set()
        self._asked: dict[int, asyncio.Future[JsonValue]] = {}
        self._last_id = 0
        self._is_ending = False

    async def serve(self) -> None:
        """Answer the client until it closes its end."""
        async with asyncio.TaskGroup() as tasks:
            async with aclosing(self._stream.lines()) as lines:
                async for line in lines:
                    await self._receive(line, tasks)
            await self._end()

    async def notify(self, method: str, params: object) -> None:
        await self._send({"jsonrpc": _VERSION, "method": method, "params": params})

    async def request(self, method: str, params: object) -> JsonValue:
        """What the client answers. Raises RemoteError. Cancelling takes the request back."""
        self._last_id += 1
        request_id = self._last_id
        answer = asyncio.get_running_loop().create_future()
        self._asked[request_id] = answer
        await self._send(
            {"jsonrpc": _VERSION, "id": request_id, "method": method, "params": params}
        )
        try:
            return await answer
        except asyncio.CancelledError:
            await self.notify(_CANCEL, {"requestId": request_id})
            raise
        finally:
            self._asked.pop(request_id, None)

    # ---- what comes in --------------------------------------------------------------------------

    async def _receive(self, line: bytes | LongLine, tasks: asyncio.TaskGroup) -> None:
        if isinstance(line, LongLine):
            text = f"A line is longer than {ACP_LINE_BYTES_MAX} bytes; it was left out"
            await self._fail(None, RpcError(PARSE_ERROR, text))
            return
        try:
            message = await _decode(line)
        except (msgspec.DecodeError, UnicodeError) as error:
            await self._fail(None, RpcError(PARSE_ERROR, f"The line is not JSON: {error}"))
            return
        if not isinstance(message, dict):
            kind = "A batch of messages" if isinstance(message, list) else "A line"
            text = f"{kind} must be sent as one JSON object on each line"
            await self._fail(None, RpcError(INVALID_REQUEST, text))
            return
        received = cast("JsonObject", message)
        if "method" not in received and ("result" in received or "error" in received):
            self._take_answer(received)
        else:
            await self._begin(received, tasks)

    async def _begin(self, message: JsonObject, tasks: asyncio.TaskGroup) -> None:
        request_id = message.get("id")
        if isinstance(request_id, bool) or not isinstance(request_id, RequestId):
            text = f"The id of a request is a number, a text or null, not {request_id!r:.80}"
            await self._fail(None, RpcError(INVALID_REQUEST, text))
            return
        is_request, fault = "id" in message, self._find_fault(message)
        if fault is not None:
            await self._fail(request_id, fault)
            return
        method, params = str(message["method"]), object_of(message.get("params"))
        if method == _CANCEL:
            await self._take_back(params)
        elif is_request:
            work = self._answer(request_id, method, params)
            task = tasks.create_task(work)
            self._running[request_id] = _Running(task, params)
        else:
            task = tasks.create_task(self._hear(method, params))
            self._notified.add(task)
            task.add_done_callback(self._notified.discard)

    def _find_fault(self, message: JsonObject) -> RpcError | None:
        request_id, method = message.get("id"), message.get("method")
        if message.get("jsonrpc", _VERSION) != _VERSION:
            return RpcError(INVALID_REQUEST, 'The field "jsonrpc" must be "2.0"')
        if not isinstance(method, str):
            return RpcError(INVALID_REQUEST, 'A request has a field "method", which is a text')
        if not isinstance(message.get("params", {}), dict | None):
            return RpcError(INVALID_PARAMS, 'The field "params" must be an object')
        if "id" in message and request_id in self._running:
            return RpcError(INVALID_REQUEST, f"A request with the id {request_id!r} is in progress")
        if len(self._running) + len(self._notified) >= ACP_REQUESTS_MAX:
            text = f"{ACP_REQUESTS_MAX} requests are in progress; wait for the answer to one"
            return RpcError(INTERNAL_ERROR, text)
        return None

    async def _answer(self, request_id: RequestId, name: str, params: JsonObject) -> None:
        try:
            method = await self._find_method(name)
            if method is None:
                raise RpcError(METHOD_NOT_FOUND, f"There is no method {name[:200]!r}")
            running = self._running[request_id]
            if running.is_taken_back or (self._is_ending and method.outlasts):
                raise RpcError(CANCELLED, _TAKEN_BACK)
            running.method = method
            result = await method.handle(params)
        except RpcError as error:
            await self._fail(request_id, error)
        except asyncio.CancelledError:
            if not self._running[request_id].is_taken_back:
                raise
            _uncancel()
            await self._fail(request_id, RpcError(CANCELLED, _TAKEN_BACK))
        except Exception:
            logger.exception("A request of the client failed: %s", name[:200])
            text = f"{name[:200]} failed in Perdure; its log on standard error says why"
            await self._fail(request_id, RpcError(INTERNAL_ERROR, text))
        else:
            await self._finish(request_id, result)
        finally:
            self._running.pop(request_id, None)

    async def _finish(self, request_id: RequestId, result: object) -> None:
        answered = result if isinstance(result, Answered) else None
        value = result if answered is None else answered.result
        await self._send({"jsonrpc": _VERSION, "id": request_id, "result": value})
        if answered is not None:
            try:
                await answered.then()
            except Exception:
                logger.exception("What follows an answer failed")

    async def _hear(self, name: str, params: JsonObject) -> None:
        try:
            method = await self._find_method(name)
            if method is not None:
                await method.handle(params)
        except RpcError as error:
            logger.warning("A notification has no effect: %s: %s", name[:200], error.message)
        except Exception:
            logger.exception("A notification of the client failed: %s", name[:200])

    async def _take_back(self, params: JsonObject) -> None:
        request_id = params.get("requestId")
        running = self._running.get(request_id) if isinstance(request_id, RequestId) else None
        if running is None:
            return
        if running.method is None:
            running.is_taken_back = True
        elif running.method.cancel is not None:
            await running.method.cancel(running.params)
        else:
            running.is_taken_back = True
            running.task.cancel()

    def _take_answer(self, message: JsonObject) -> None:
        request_id = message.get("id")
        answer = self._asked.pop(request_id, None) if isinstance(request_id, int) else None
        if answer is None or answer.done():
            # Answered twice, or taken back meanwhile.
            return
        if "error" in message:
            answer.set_exception(RemoteError(f"{message['error']!r:.500}"))
        else:
            answer.set_result(message.get("result"))

    # ---- what goes out --------------------------------------------------------------------------

    async def _fail(self, request_id: RequestId, error: RpcError) -> None:
        value = ErrorValue(error.code, error.message, error.data)
        await self._send({"jsonrpc": _VERSION, "id": request_id, "error": value})

    async def _send(self, message: Mapping[str, object]) -> None:
        await self._stream.write(codec.encode(message))

    async def _end(self) -> None:
        """Let short requests finish; leave those that wait for work, and what the client owes."""
        self._is_ending = True
        for running in self._running.values():
            if running.method is not None and running.method.outlasts:
                running.task.cancel()
        for answer in self._asked.values():
            answer.cancel()
        tasks = [*self._notified, *(running.task for running in self._running.values())]
        if tasks:
            await asyncio.wait(tasks, timeout=_LAST_SECONDS_MAX)
        for task in tasks:
            task.cancel()


def read_params(
    kind: type[T], handle: Callable[[T], Awaitable[object]]
) -> Callable[[JsonObject], Awaitable[object]]:
    """A handler of a decoded value. Parameters that do not fit are refused, and named."""

    async def call(params: JsonObject) -> object:
        try:
            given = codec.convert(kind, params)
        except msgspec.ValidationError as error:
            raise RpcError(INVALID_PARAMS, f"The parameters do not fit: {error}") from error
        return await handle(given)

    return call


async def _decode(line: bytes) -> JsonValue:
    if len(line) <= _INLINE_BYTES_MAX:
        return codec.decode_any(line)
    return await asyncio.to_thread(partial(codec.decode_any, line))


def _uncancel() -> None:
    task = asyncio.current_task()
    assert task is not None
    with suppress(RuntimeError):
        task.uncancel()
