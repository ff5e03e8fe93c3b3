"""A turn by V1: the prompt, the events in their order, and messages that list the same parts."""

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from perdure.net import sse
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, Backend
from tests.support.raw_http import RawClient, call, connected
from tests.support.scripted_provider import Call, calls, text

PROMPT = {"parts": [{"type": "text", "text": "look at it"}]}


@asynccontextmanager
async def following(port: int, path: str) -> AsyncGenerator[RawClient]:
    async with connected(port) as client:
        await client.say(f"GET {path} HTTP/1.1\r\nhost: localhost\r\n\r\n".encode())
        assert (await client.head()).status == 200
        yield client


async def read_until_idle(client: RawClient) -> list[JsonObject]:
    found: list[JsonObject] = []
    reader = sse.Reader(bytes_max=1_000_000)
    while not any(each["type"] == "session.idle" for each in found):
        for frame in reader.feed(await client.chunk()):
            told = codec.decode_any(frame.data)
            found.append(told.get("payload", told))
    return found


async def test_the_events_of_a_turn_come_in_the_order_of_the_published_server(
    backend: Backend, port: int
) -> None:
    backend.provider.then(text("I ", "see."))
    async with following(port, "/event") as client:
        answer = await call(port, "POST", f"/session/{SESSION}/message", codec.encode(PROMPT))
        events = await read_until_idle(client)
    assert answer.status == 200
    shown = [each["type"] for each in events]
    assert [name for name in shown if name.startswith("session.next.")] == []
    order = list(dict.fromkeys(shown))
    assert order[:3] == ["server.connected", "message.updated", "message.part.updated"]
    kinds = [
        (each["properties"]["part"]["type"] if "part" in each["properties"] else each["type"])
        for each in events
        if each["type"].startswith("message.part.")
    ]
    assert [kind for place, kind in enumerate(kinds) if kinds[place - 1 : place] != [kind]] == [
        "text",
        "step-start",
        "text",
        "message.part.delta",
        "text",
        "step-finish",
    ]
    assert shown[-3:] == ["session.status", "session.idle", "session.diff"]
    deltas = [
        each["properties"]["delta"] for each in events if each["type"] == "message.part.delta"
    ]
    assert "".join(deltas) == "I see."


async def test_a_prompt_of_v2_is_told_in_both_forms_until_v1_prompts(
    backend: Backend, port: int
) -> None:
    backend.provider.then(text("I ", "see."), text("Again."))
    v2 = b'{"prompt":{"text":"look"}}'
    async with following(port, "/event") as plain, following(port, "/global/event") as whole:
        await call(port, "POST", f"/api/session/{SESSION}/prompt", v2)
        for client in (plain, whole):
            events = await read_until_idle(client)
            kinds = {each["type"] for each in events}
            # Programs that prompt by V2 and listen by V1 wait for these.
            assert {"session.next.text.delta", "session.next.step.ended"} <= kinds
            for kind in ("session.next.text.delta", "message.part.delta"):
                deltas = [e["properties"]["delta"] for e in events if e["type"] == kind]
                assert "".join(deltas) == "I see."
        await call(port, "POST", f"/session/{SESSION}/message", codec.encode(PROMPT))
        for client in (plain, whole):
            later = {each["type"] for each in await read_until_idle(client)}
            assert "message.part.delta" in later
            assert not any(kind.startswith("session.next.") for kind in later)


async def test_parts_have_the_same_ids_in_the_stream_and_in_the_list(
    backend: Backend, port: int
) -> None:
    backend.provider.then(calls(Call("glob", {"pattern": "*"})), text("Done."))
    async with following(port, "/global/event") as client:
        await call(port, "POST", f"/session/{SESSION}/message", codec.encode(PROMPT))
        events = await read_until_idle(client)
    streamed = {
        each["properties"]["part"]["id"]: each["properties"]["part"]
        for each in events
        if each["type"] == "message.part.updated"
    }
    listed = (await call(port, "GET", f"/session/{SESSION}/message")).json()
    parts = [part for message in listed for part in message["parts"]]
    assert [part["id"] for part in parts] == list(streamed)
    tool = next(part for part in parts if part["type"] == "tool")
    assert (tool["tool"], tool["state"]["status"]) == ("glob", "completed")
    assert streamed[tool["id"]] == tool
    for message in listed:
        own = [part["id"] for part in message["parts"]]
        assert own == sorted(own)
    user, *answers = listed
    assert {each["info"]["parentID"] for each in answers} == {user["info"]["id"]}


async def test_a_session_is_created_renamed_listed_and_deleted(port: int) -> None:
    made = (await call(port, "POST", "/session", b'{"title":"One"}')).json()
    path = f"/session/{made['id']}"
    assert made["title"] == "One"
    renamed = await call(port, "PATCH", path, b'{"title":"Two"}')
    assert renamed.json()["title"] == "Two"
    listed = (await call(port, "GET", "/session")).json()
    assert made["id"] in {each["id"] for each in listed}
    assert (await call(port, "DELETE", path)).json() is True
    gone = await call(port, "GET", path)
    assert (gone.status, gone.json()["name"]) == (404, "NotFoundError")


@pytest.mark.parametrize("field", ["system", "tools", "format"])
async def test_what_a_prompt_cannot_have_is_refused_by_name(field: str, port: int) -> None:
    given = {"system": "x", "tools": {"bash": False}, "format": {"type": "text"}}
    body = codec.encode(PROMPT | {field: given[field]})
    answer = await call(port, "POST", f"/session/{SESSION}/prompt_async", body)
    assert (answer.status, answer.json()["name"]) == (400, "BadRequest")
    assert field in answer.json()["data"]["message"]


async def test_v1_can_be_turned_off(backend: Backend) -> None:
    async with backend.port(replace(backend.settings(), v1=False)) as port:
        assert (await call(port, "GET", "/global/health")).status == 404
        assert (await call(port, "GET", "/api/health")).status == 200


async def test_v1_is_not_loaded_by_a_request_of_v2(backend: Backend) -> None:
    for name in [name for name in sys.modules if name.startswith("perdure.server.v1")]:
        del sys.modules[name]
    async with backend.port() as port:
        await call(port, "GET", "/api/health")
        assert "perdure.server.v1.routes" not in sys.modules
        await call(port, "GET", "/global/health")
        assert "perdure.server.v1.routes" in sys.modules
