"""The list of what waits for a person, over all Sessions."""

import asyncio
from pathlib import Path

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import SESSION, Backend
from tests.support.raw_http import PATIENCE_SECONDS, call
from tests.support.scripted_provider import Call, calls, text

QUESTIONS: list[JsonObject] = [{"question": "Why?", "header": "Reason", "options": []}]


async def attention(port: int) -> list[JsonObject]:
    return (await call(port, "GET", "/api/session/attention")).json()["data"]


async def test_a_session_that_asks_is_listed_until_it_is_answered(
    port: int, backend: Backend
) -> None:
    assert await attention(port) == []
    backend.provider.then(calls(Call("question", {"questions": QUESTIONS}, "call_1")), text("done"))
    with backend.runtime.hub.subscribe() as live:
        await call(port, "POST", f"/api/session/{SESSION}/prompt", b'{"prompt":{"text":"hi"}}')
        async with asyncio.timeout(PATIENCE_SECONDS):
            while b"question.v2.asked" not in (await live.next() or b""):
                pass
    (found,) = await attention(port)
    (request,) = found["questions"]
    listed = (await call(port, "GET", f"/api/session/{SESSION}/question")).json()["data"]
    assert found == {
        "sessionID": SESSION,
        "running": True,
        "permissions": [],
        "questions": listed,
    }
    path = f"/api/session/{SESSION}/question/{request['id']}/reply"
    await call(port, "POST", path, codec.encode({"answers": [["because"]]}))
    await call(port, "POST", f"/api/session/{SESSION}/wait")
    assert await attention(port) == []


async def test_a_request_of_another_location_is_listed_too(port: int, backend: Backend) -> None:
    folder = f"{backend.here}/elsewhere"
    Path(folder).mkdir()
    rules = [{"action": "edit", "resource": "*", "effect": "ask"}]
    given = {"location": {"directory": folder}, "permissions": rules}
    made = await call(port, "POST", "/api/session", codec.encode(given))
    session = made.json()["data"]["id"]
    asked = {"action": "edit", "resources": ["/etc/passwd"]}
    path = f"/api/session/{session}/permission"
    decision = (await call(port, "POST", path, codec.encode(asked))).json()["data"]
    assert decision["effect"] == "ask"
    (found,) = await attention(port)
    assert (found["sessionID"], found["running"]) == (session, False)
    assert [it["id"] for it in found["permissions"]] == [decision["id"]]
