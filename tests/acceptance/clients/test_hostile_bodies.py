"""Bodies that take long to decode or to store are refused before; large texts are not."""

import pytest

from perdure.core import limits
from perdure.schema.json_values import JSON_VALUES_MAX
from tests.support.api import Api

SAID = f"The body has more than {JSON_VALUES_MAX} JSON values"


@pytest.mark.parametrize(
    "body",
    [
        b'{"prompt":{"text":"a"},' + b'"a":1,' * 1_500_000 + b'"b":1}',
        b'{"prompt":{"text":1,"files":[' + b"{}," * 100_000 + b"{}]}}",
        b'{"prompt":{"text":"a","x":' + b'{"a":' * 100_000,
        b"[" * 1_000_000,
    ],
    ids=["keys", "items", "nesting", "brackets"],
)
async def test_a_body_of_too_many_values_is_refused(api: Api, body: bytes) -> None:
    session = await api.create()
    answer = await api.raw(api.message("POST", f"/api/session/{session}/prompt", body))
    assert (answer.status, answer.json["message"]) == (400, SAID)
    assert await api.messages(session) == []


async def test_a_long_text_full_of_marks_is_admitted(api: Api) -> None:
    session = await api.create()
    words = '[{"a": "b,\\"c"}],\n@a ' * 200_000
    words = words[: limits.PROMPT_TEXT_BYTES_MAX]
    await api.ask(session, words)
    (prompt, *_) = await api.messages(session)
    assert prompt["text"] == words


async def test_pages_of_long_messages_are_short_and_complete(api: Api) -> None:
    session = await api.create()
    words = "x" * (limits.PROMPT_TEXT_BYTES_MAX - 1)
    for number in range(3):
        await api.ask(session, f"{number}{words}")
    seen: list[str] = []
    path = f"/api/session/{session}/message?order=asc&limit=100"
    while True:
        page = await api.get(path)
        assert len(page["data"]) < 6
        seen += [message["text"][0] for message in page["data"] if message["type"] == "user"]
        if "next" not in page["cursor"]:
            break
        path = f"/api/session/{session}/message?cursor={page['cursor']['next']}"
    assert seen == ["0", "1", "2"]
    assert [event["durable"]["seq"] for event in await api.history(session)] == list(
        range(1, (await api.history(session))[-1]["durable"]["seq"] + 1)
    )


async def test_an_error_does_not_quote_a_secret_that_was_sent(api: Api) -> None:
    session = await api.create()
    body = {"prompt": {"text": {"apiKey": "abcd-1234", "name": "x"}}}
    answer = await api.call("POST", f"/api/session/{session}/prompt", body)
    assert answer.status == 400
    assert 'got {"apiKey":"[redacted]","name":"x"}' in answer.json["message"]
