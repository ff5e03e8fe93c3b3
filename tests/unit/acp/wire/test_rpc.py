"""Whatever a client sends: an answer if one is due, and the next request is answered too."""

import asyncio
import json
from collections.abc import AsyncGenerator

import pytest

from perdure.acp.wire.line_splitter import LongLine
from perdure.acp.wire.rpc import Connection, Method, RemoteError
from perdure.acp.wire.rpc_error import RpcError
from perdure.core.limits import ACP_REQUESTS_MAX
from perdure.schema.codec import JsonObject, JsonValue

PATIENCE_SECONDS = 5


class Peer:
    """Implements LineStream."""

    def __init__(self) -> None:
        self.lines_to_agent: asyncio.Queue[bytes | LongLine] = asyncio.Queue()
        self.got: asyncio.Queue[JsonObject] = asyncio.Queue()

    async def lines(self) -> AsyncGenerator[bytes | LongLine]:
        while line := await self.lines_to_agent.get():
            yield line

    async def write(self, line: bytes) -> None:
        self.got.put_nowait(json.loads(line))

    def say(self, line: bytes | LongLine) -> None:
        self.lines_to_agent.put_nowait(line)

    def send(self, message: JsonValue) -> None:
        self.say(json.dumps(message).encode())

    async def next(self) -> JsonObject:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.got.get()


async def _echo(params: JsonObject) -> JsonObject:
    return params


async def _refuse(params: JsonObject) -> None:
    raise RpcError(-32002, "There is none", {"of": params})


async def _break(params: JsonObject) -> None:
    raise ZeroDivisionError(params)


async def _hang(params: JsonObject) -> None:
    del params
    await asyncio.Event().wait()


METHODS = {
    "echo": Method(_echo),
    "refuse": Method(_refuse),
    "break": Method(_break),
    "hang": Method(_hang),
    "work": Method(_hang, outlasts=True),
}


async def _find(name: str) -> Method | None:
    return METHODS.get(name)


async def _serve(peer: Peer) -> tuple[Connection, "asyncio.Task[None]"]:
    connection = Connection(peer, _find)
    return connection, asyncio.create_task(connection.serve())


async def _end(peer: Peer, serving: "asyncio.Task[None]") -> None:
    peer.say(b"")
    async with asyncio.timeout(PATIENCE_SECONDS):
        await serving


def _request(id: JsonValue, method: JsonValue = "echo", **rest: JsonValue) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, **rest}).encode()


HOSTILE: list[tuple[bytes | LongLine, JsonValue, int]] = [
    (b"{", None, -32700),
    (b"\xff\xfe", None, -32700),
    (b'{"a":1} trailing', None, -32700),
    (b"[" * 100_000, None, -32700),
    (b'{"id":1,"method":"echo","params":' + b'{"a":' * 500 + b"1" + b"}" * 501, None, -32700),
    (LongLine(), None, -32700),
    (b"null", None, -32600),
    (b"7", None, -32600),
    (b'"initialize"', None, -32600),
    (b"[]", None, -32600),
    (b'[{"jsonrpc":"2.0","id":1,"method":"echo"}]', None, -32600),
    (b"{}", None, -32600),
    (_request(True), None, -32600),
    (_request(1.5), None, -32600),
    (_request([1]), None, -32600),
    (_request({"a": 1}), None, -32600),
    (_request(1, 7), 1, -32600),
    (_request(2, None), 2, -32600),
    (b'{"jsonrpc":"1.0","id":3,"method":"echo"}', 3, -32600),
    (b'{"jsonrpc":"2.0","id":4}', 4, -32600),
    (_request(5, "echo", params=[1]), 5, -32602),
    (_request(6, "echo", params="text"), 6, -32602),
    (_request(7, "no/such"), 7, -32601),
    (_request("text", "x" * 10_000), "text", -32601),
    (_request(None, "no/such"), None, -32601),
    (_request(-1, "refuse"), -1, -32002),
    (_request("b", "break"), "b", -32603),
]


@pytest.mark.parametrize(("line", "id", "code"), HOSTILE)
async def test_a_bad_line_is_answered_and_ends_nothing(
    line: bytes | LongLine, id: JsonValue, code: int
) -> None:
    peer = Peer()
    _, serving = await _serve(peer)
    peer.say(line)
    answer = await peer.next()
    assert (answer["id"], answer["error"]["code"]) == (id, code)
    assert answer["error"]["message"]
    peer.say(_request("after", params={"a": 1}))
    assert await peer.next() == {"jsonrpc": "2.0", "id": "after", "result": {"a": 1}}
    await _end(peer, serving)


@pytest.mark.parametrize("id", [0, -5, 2**53, "", "text", None])
async def test_an_id_of_any_kind_comes_back(id: JsonValue) -> None:
    peer = Peer()
    _, serving = await _serve(peer)
    peer.say(_request(id, params=None))
    assert await peer.next() == {"jsonrpc": "2.0", "id": id, "result": {}}
    await _end(peer, serving)


@pytest.mark.parametrize(
    "line",
    [
        b'{"jsonrpc":"2.0","method":"no/such"}',
        b'{"jsonrpc":"2.0","method":"break","params":{}}',
        b'{"jsonrpc":"2.0","method":"refuse","params":{}}',
        b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":99}}',
        b'{"jsonrpc":"2.0","method":"$/cancel_request","params":{"requestId":[{}]}}',
        b'{"jsonrpc":"2.0","id":77,"result":{}}',
        b'{"jsonrpc":"2.0","id":"text","error":{"code":1,"message":"no"}}',
        b'{"jsonrpc":"2.0","id":[],"result":{}}',
        b'{"result":{}}',
    ],
)
async def test_what_is_no_request_gets_no_answer(line: bytes) -> None:
    peer = Peer()
    _, serving = await _serve(peer)
    peer.say(line)
    peer.say(_request("after"))
    assert (await peer.next())["id"] == "after"
    await _end(peer, serving)


async def test_an_id_that_is_in_use_is_refused() -> None:
    peer = Peer()
    _, serving = await _serve(peer)
    peer.say(_request(1, "work"))
    peer.say(_request(1))
    assert (await peer.next())["error"]["code"] == -32600
    await _end(peer, serving)


async def test_a_request_can_be_taken_back() -> None:
    peer = Peer()
    _, serving = await _serve(peer)
    peer.say(_request(1, "hang"))
    peer.send({"jsonrpc": "2.0", "method": "$/cancel_request", "params": {"requestId": 1}})
    answer = await peer.next()
    assert (answer["id"], answer["error"]["code"]) == (1, -32800)
    peer.say(_request(1))
    assert (await peer.next())["result"] == {}
    await _end(peer, serving)


async def test_requests_in_progress_have_a_bound() -> None:
    peer = Peer()
    _, serving = await _serve(peer)
    for number in range(ACP_REQUESTS_MAX + 1):
        peer.say(_request(number, "work"))
    answer = await peer.next()
    assert (answer["id"], answer["error"]["code"]) == (ACP_REQUESTS_MAX, -32603)
    await _end(peer, serving)


async def test_short_requests_are_answered_after_the_client_has_closed_its_end() -> None:
    peer = Peer()
    peer.say(_request(1))
    peer.say(_request(2, "work"))
    peer.say(b"")
    _, serving = await _serve(peer)
    async with asyncio.timeout(PATIENCE_SECONDS):
        await serving
    answers = [await peer.next(), await peer.next()]
    assert {answer["id"]: "result" in answer for answer in answers} == {1: True, 2: False}
    assert peer.got.empty()


async def test_the_client_is_asked_and_answers_once() -> None:
    peer = Peer()
    connection, serving = await _serve(peer)
    asking = asyncio.create_task(connection.request("ask", {"a": 1}))
    asked = await peer.next()
    assert (asked["method"], asked["params"]) == ("ask", {"a": 1})
    for result in ("first", "second"):
        peer.send({"jsonrpc": "2.0", "id": asked["id"], "result": result})
    assert await asking == "first"
    failing = asyncio.create_task(connection.request("ask", {}))
    peer.send({"jsonrpc": "2.0", "id": (await peer.next())["id"], "error": "no object"})
    with pytest.raises(RemoteError):
        await failing
    await _end(peer, serving)


async def test_a_question_that_is_no_longer_wanted_is_taken_back() -> None:
    peer = Peer()
    connection, serving = await _serve(peer)
    asking = asyncio.create_task(connection.request("ask", {}))
    asked = await peer.next()
    asking.cancel()
    told = await peer.next()
    assert (told["method"], told["params"]) == ("$/cancel_request", {"requestId": asked["id"]})
    await _end(peer, serving)
