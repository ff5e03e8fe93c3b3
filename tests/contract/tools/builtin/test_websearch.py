"""websearch: which service is asked and how, what comes back, and what never does."""

import asyncio
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from msgspec.structs import replace

from perdure.core import limits
from perdure.host.http.client import HttptoolsTransport
from perdure.host.http.web_pages import WebClient
from perdure.ports import PermissionBlockedError
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from perdure.tools.api.registry import ToolError, ToolSuccess
from perdure.tools.builtin.websearch import NOTHING_FOUND
from perdure.tools.environment import WebAccess
from perdure.tools.web.search_backend import EXA, PARALLEL, JsonRpcSearch, SearchService
from tests.contract.host.loopback import (
    Answer,
    Loopback,
    replying,
    replying_late,
    response,
    serving,
)
from tests.contract.tools.tool_bench import ToolBench
from tests.requirements import requirement
from tests.support.inputs.decompression_bombs import gzip_bomb

KEY = "canary-5f1e0c77d2"
JSON = "content-type: application/json\r\n"


def result(text: str, **more: object) -> JsonObject:
    found = {"content": [{"type": "text", "text": text}], **more}
    return {"jsonrpc": "2.0", "id": 1, "result": found}


def json(body: JsonObject) -> Answer:
    return replying(response(codec.encode(body), headers=JSON))


@asynccontextmanager
async def searching(
    tmp_path: Path, answer: Answer, service: SearchService = EXA, *, key: str = KEY
) -> AsyncGenerator[tuple[ToolBench, Loopback]]:
    transport = HttptoolsTransport()
    async with serving(answer) as server:
        moved = replace(service, url=f"{server.url}/mcp")
        backend = JsonRpcSearch(service=moved, transport=transport, key=key)
        assert KEY not in repr(backend)
        bench = ToolBench(tmp_path)
        web = WebAccess(pages=WebClient(), search=lambda _: backend)
        bench.environment = replace(bench.environment, web=web)
        try:
            with bench.open():
                yield bench, server
        finally:
            await transport.aclose()


@requirement("S180")
async def test_the_first_service_is_asked_in_its_own_terms(tmp_path: Path) -> None:
    async with searching(tmp_path, json(result("# Found\nit"))) as (bench, server):
        settled = await bench.success("websearch", query="new syntax")
        assert await bench.text("websearch", query="x") == "# Found\nit"
    assert settled.structured == {"provider": "exa"}
    request = server.requests[0]
    assert (request.method, request.target) == ("POST", "/mcp")
    assert request.headers["x-api-key"] == KEY
    assert codec.decode_any(request.body) == {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {
            "name": "web_search_exa",
            "arguments": {
                "query": "new syntax",
                "type": "auto",
                "numResults": 8,
                "livecrawl": "fallback",
            },
        },
    }
    asked = bench.desk.asked[0]
    assert (asked.action, asked.resources, asked.save) == ("websearch", ("new syntax",), ("*",))
    assert asked.metadata == {"query": "new syntax", "provider": "exa"}


@requirement("S180")
async def test_every_option_reaches_the_service(tmp_path: Path) -> None:
    async with searching(tmp_path, json(result("abcdef"))) as (bench, server):
        text = await bench.text(
            "websearch",
            query="q",
            numResults=20,
            livecrawl="preferred",
            type="deep",
            contextMaxCharacters=4,
        )
    assert text == "abcd"
    arguments = codec.decode_any(server.requests[0].body)["params"]["arguments"]
    assert arguments == {
        "query": "q",
        "type": "deep",
        "numResults": 20,
        "livecrawl": "preferred",
        "contextMaxCharacters": 4,
    }


async def test_the_second_service_is_asked_in_its_own_terms(tmp_path: Path) -> None:
    stream = b"event: message\ndata: " + codec.encode(result("streamed")) + b"\n\n"
    answer = replying(response(stream, headers="content-type: text/event-stream\r\n"))
    async with searching(tmp_path, answer, PARALLEL) as (bench, server):
        settled = await bench.success("websearch", query="new syntax")
        assert await bench.text("websearch", query="x") == "streamed"
    assert settled.structured == {"provider": "parallel"}
    request = server.requests[0]
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert codec.decode_any(request.body)["params"] == {
        "name": "web_search",
        "arguments": {
            "objective": "new syntax",
            "search_queries": ["new syntax"],
            "session_id": "ses_test",
        },
    }


async def test_notifications_before_the_result_are_passed_over(tmp_path: Path) -> None:
    note = codec.encode({"jsonrpc": "2.0", "method": "notifications/progress"})
    stream = b": hello\n\ndata: " + note + b"\n\ndata: " + codec.encode(result("late"))
    answer = replying(response(stream, headers="content-type: text/event-stream\r\n"))
    async with searching(tmp_path, answer) as (bench, _):
        assert await bench.text("websearch", query="q") == "late"


@pytest.mark.parametrize("found", [result(""), result("  \n"), {"result": {"content": []}}])
async def test_when_nothing_is_found_the_model_is_told_so(
    tmp_path: Path, found: JsonObject
) -> None:
    async with searching(tmp_path, json(found)) as (bench, _):
        assert await bench.text("websearch", query="q") == NOTHING_FOUND


async def test_without_a_key_none_is_sent(tmp_path: Path) -> None:
    async with searching(tmp_path, json(result("free")), key="") as (bench, server):
        assert await bench.text("websearch", query="q") == "free"
    assert "x-api-key" not in server.requests[0].headers


async def test_without_a_service_nothing_is_called_and_the_way_to_one_is_told(
    tmp_path: Path,
) -> None:
    bench = ToolBench(tmp_path)
    web = WebAccess(pages=WebClient(), search=lambda _: None)
    bench.environment = replace(bench.environment, web=web)
    with bench.open():
        told = await bench.error("websearch", query="q")
    assert "EXA_API_KEY" in told
    assert '"websearch"' in told
    assert bench.desk.asked == []


async def test_nothing_is_sent_before_it_is_allowed(tmp_path: Path) -> None:
    async with searching(tmp_path, json(result("x"))) as (bench, server):
        bench.desk.answers["websearch"] = PermissionBlockedError("not you")
        assert await bench.error("websearch", query="q") == "not you"
    assert server.connections == 0


@pytest.mark.parametrize(
    "input",
    [
        {},
        {"query": ""},
        {"query": "x" * (limits.WEB_SEARCH_QUERY_CHARS_MAX + 1)},
        {"query": "q", "numResults": 0},
        {"query": "q", "numResults": 21},
        {"query": "q", "livecrawl": "always"},
        {"query": "q", "type": "slow"},
        {"query": "q", "contextMaxCharacters": 50_001},
        {"query": "q", "contextMaxCharacters": 0},
    ],
)
async def test_bad_input_is_explained_and_sent_nowhere(
    tmp_path: Path, input: dict[str, object]
) -> None:
    async with searching(tmp_path, json(result("x"))) as (bench, server):
        assert "Invalid tool input" in await bench.error("websearch", **input)
    assert server.connections == 0


ECHO = codec.encode({"error": {"code": -32000, "message": f"key {KEY} is over its quota"}})
HOSTILE: dict[str, tuple[Answer, str]] = {
    "error": (replying(response(ECHO, headers=JSON)), "key (key) is over its quota"),
    "failed": (json(result(f"bad {KEY}", isError=True)), "bad (key)"),
    "status": (replying(response(KEY.encode(), status="401 Unauthorized")), "answered 401"),
    "redirect": (
        replying(response(b"", status="302 Found", headers="location: http://evil.example/\r\n")),
        "answered 302",
    ),
    "not JSON": (replying(response(b"<html>", headers=JSON)), "not what a search gives"),
    "other JSON": (replying(response(b'{"result": 7}', headers=JSON)), "not what a search gives"),
    "not UTF-8": (replying(response(b'{"result": "\xff"}', headers=JSON)), "not what a search"),
    "nothing": (replying(response(b"{}", headers=JSON)), "no result"),
    "too large": (
        replying(response(b" " * (limits.WEB_SEARCH_BYTES_MAX + 1), headers=JSON)),
        "larger than",
    ),
    "compressed too large": (
        replying_late(lambda: response(gzip_bomb(48, b" "), headers="content-encoding: gzip\r\n")),
        "larger than",
    ),
    "cut": (replying(b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n"), "not HTTP"),
}


@pytest.mark.parametrize("name", HOSTILE)
async def test_a_service_that_misbehaves_is_told_of_without_its_key(
    tmp_path: Path, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    answer, told = HOSTILE[name]
    async with searching(tmp_path, answer) as (bench, _), asyncio.timeout(20):
        settled = await bench.call("websearch", query="q")
    assert isinstance(settled, ToolError)
    assert settled.message.startswith("Unable to search the web: exa: ")
    assert told in settled.message
    assert KEY not in settled.message
    assert KEY not in caplog.text


async def test_a_key_that_the_service_repeats_reaches_nobody(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with searching(tmp_path, json(result(f"echo {KEY} and {KEY}"))) as (bench, _):
        settled = await bench.call("websearch", query="q")
    assert isinstance(settled, ToolSuccess)
    assert KEY not in repr(settled)
    assert KEY not in repr(bench.desk.asked)
    assert KEY not in caplog.text
