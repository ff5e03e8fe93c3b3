"""The revert routes: their shapes and their refusals."""

from collections.abc import AsyncGenerator

import pytest

from perdure.schema import codec
from tests.contract.server.fake_runtime import SESSION, Stage, call, listening, settings

REVERT = f"/api/session/{SESSION}/revert"


@pytest.fixture
async def stage() -> Stage:
    return Stage()


@pytest.fixture
async def port(stage: Stage) -> AsyncGenerator[int]:
    async with listening(stage.app(settings())) as (_, number):
        yield number


@pytest.mark.parametrize(("files", "asked"), [({}, True), ({"files": False}, False)])
async def test_files_are_asked_for_unless_refused(
    port: int, stage: Stage, files: dict[str, bool], *, asked: bool
) -> None:
    body = codec.encode({"messageID": "msg_1", **files})
    answer = await call(port, "POST", f"{REVERT}/stage", body)
    assert (answer.status, answer.json()) == (200, {"data": {"messageID": "msg_1"}})
    assert stage.sessions.revert.calls == [("stage", SESSION, "msg_1", asked)]


@pytest.mark.parametrize("verb", ["clear", "commit"])
async def test_ending_a_revert_answers_nothing(port: int, stage: Stage, verb: str) -> None:
    answer = await call(port, "POST", f"{REVERT}/{verb}")
    assert (answer.status, answer.body) == (204, b"")
    assert stage.sessions.revert.calls == [(verb, SESSION)]


@pytest.mark.parametrize(
    ("message", "status", "failure"),
    [
        ("msg_absent", 404, {"_tag": "MessageNotFoundError", "messageID": "msg_absent"}),
        ("msg_busy", 409, {"_tag": "ConflictError", "resource": SESSION}),
    ],
)
async def test_refusals_name_what_stands_in_the_way(
    port: int, message: str, status: int, failure: dict[str, str]
) -> None:
    answer = await call(port, "POST", f"{REVERT}/stage", codec.encode({"messageID": message}))
    assert answer.status == status
    assert failure.items() <= answer.json().items()


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
    port: int, stage: Stage, body: bytes, message: str
) -> None:
    answer = await call(port, "POST", f"{REVERT}/stage", body)
    assert (answer.status, answer.json()["kind"]) == (400, "Payload")
    assert message in answer.json()["message"]
    assert stage.sessions.revert.calls == []
