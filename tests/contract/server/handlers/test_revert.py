"""The revert routes: their shapes and their refusals."""

import asyncio

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.server.served_runtime import OTHER, SESSION, Backend
from tests.support.raw_http import call
from tests.support.scripted_provider import Call, calls, text

REVERT = f"/api/session/{SESSION}/revert"


async def staged(port: int) -> JsonObject | None:
    """The revert that the Session shows."""
    return (await call(port, "GET", f"/api/session/{SESSION}")).json()["data"].get("revert")


async def stage(port: int, message_id: str) -> None:
    body = codec.encode({"messageID": message_id})
    assert (await call(port, "POST", f"{REVERT}/stage", body)).status == 200


@pytest.mark.parametrize(("files", "restored"), [({}, True), ({"files": False}, False)])
async def test_files_are_restored_unless_refused(
    port: int, backend: Backend, files: dict[str, bool], *, restored: bool
) -> None:
    written = backend.folders.project / "new.txt"
    backend.provider.then(
        calls(Call("write", {"path": "new.txt", "content": "new"})), text("written")
    )
    body = b'{"prompt":{"text":"write it"},"id":"msg_1"}'
    await call(port, "POST", f"/api/session/{SESSION}/prompt", body)
    await call(port, "POST", f"/api/session/{SESSION}/wait")
    assert written.exists()
    body = codec.encode({"messageID": "msg_1", **files})
    answer = await call(port, "POST", f"{REVERT}/stage", body)
    assert (answer.status, answer.json()["data"]["messageID"]) == (200, "msg_1")
    assert written.exists() is not restored


async def test_a_staged_revert_is_the_answer_and_shows_on_the_session(
    port: int, backend: Backend
) -> None:
    await backend.add_messages(SESSION, 3)
    answer = await call(port, "POST", f"{REVERT}/stage", b'{"messageID":"msg_1"}')
    assert (answer.status, answer.json()) == (200, {"data": {"messageID": "msg_1"}})
    assert await staged(port) == {"messageID": "msg_1"}


@pytest.mark.parametrize(("verb", "left"), [("clear", 3), ("commit", 1)])
async def test_ending_a_revert_answers_nothing(
    port: int, backend: Backend, verb: str, left: int
) -> None:
    await backend.add_messages(SESSION, 3)
    await stage(port, "msg_1")
    answer = await call(port, "POST", f"{REVERT}/{verb}")
    assert (answer.status, answer.body) == (204, b"")
    assert await staged(port) is None
    messages = (await call(port, "GET", f"/api/session/{SESSION}/message")).json()["data"]
    assert len(messages) == left


async def test_refusals_name_what_stands_in_the_way(port: int, backend: Backend) -> None:
    absent = await call(port, "POST", f"{REVERT}/stage", b'{"messageID":"msg_absent"}')
    assert absent.status == 404
    expected = {"_tag": "MessageNotFoundError", "messageID": "msg_absent"}
    assert expected.items() <= absent.json().items()
    hold = asyncio.Event()
    backend.provider.then(text("working", hold=hold))
    body = b'{"prompt":{"text":"hi"},"id":"msg_1"}'
    await call(port, "POST", f"/api/session/{SESSION}/prompt", body)
    await backend.provider.arrived(1)
    busy = await call(port, "POST", f"{REVERT}/stage", b'{"messageID":"msg_1"}')
    assert busy.status == 409
    assert {"_tag": "ConflictError", "resource": SESSION}.items() <= busy.json().items()
    hold.set()
    other = f"/api/session/{OTHER}/revert/stage"
    assert (await call(port, "POST", other, b'{"messageID":"msg_1"}')).status == 404


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "Expected object, got undefined"),
        (b'{"messageID":', "Malformed JSON"),
        (b"{}", 'Missing key\n  at ["messageID"]'),
        (b'{"messageID":"zz"}', 'starting with "msg_"'),
        (b'{"messageID":"msg_1","files":"yes"}', 'at ["files"]'),
        (b'{"messageID":"msg_%b"}' % (b"x" * 5_000), "a string matching"),
    ],
)
async def test_a_body_that_does_not_fit_stages_nothing(
    port: int, backend: Backend, body: bytes, message: str
) -> None:
    await backend.add_messages(SESSION, 1)
    answer = await call(port, "POST", f"{REVERT}/stage", body)
    assert (answer.status, answer.json()["kind"]) == (400, "Payload")
    assert message in answer.json()["message"]
    assert await staged(port) is None
