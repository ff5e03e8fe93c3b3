"""A Session with servers that resemble OpenAI, over real HTTP: what only some of them say."""

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.protocols.openai_chat import recordings as wire
from tests.support.api import Api
from tests.support.scripted_provider import Reply, ScriptedProvider, refusal, text

UNREAD: JsonObject = {
    "error": {
        "message": "Failed to call a function. See 'failed_generation' for more details.",
        "type": "invalid_request_error",
        "code": "tool_use_failed",
        "failed_generation": '<function=bash={"command": "echo</function>',
    }
}
"""As Groq refuses what a model wrote instead of a call."""


def streamed(*frames: bytes) -> Reply:
    return Reply(pieces=tuple(wire.body_of([frame]) for frame in frames))


@pytest.mark.parametrize(
    "unread",
    [
        refusal(400, UNREAD),
        streamed(codec.encode(UNREAD)),
        streamed(wire.chunk({"content": "I look. "}), codec.encode(UNREAD)),
    ],
    ids=["refused", "in-the-stream", "after-words"],
)
async def test_a_call_that_the_server_could_not_read_goes_back_to_the_model(
    api: Api, provider: ScriptedProvider, unread: Reply
) -> None:
    provider.then(unread, text("Now without it."))
    session = await api.create()
    _, failed, answer = await api.ask(session, "look")
    assert failed["finish"] == "tool-calls"
    call = failed["content"][-1]
    assert (call["name"], call["state"]["status"]) == ("bash", "error")
    assert "could not read this call" in call["state"]["error"]["message"]
    assert answer["content"][0]["text"] == "Now without it."
    (told,) = [m for m in provider.requests[1].body["messages"] if m["role"] == "tool"]
    assert "could not read this call" in told["content"]


async def test_calls_of_an_answer_without_a_finish_reason_are_run(
    api: Api, provider: ScriptedProvider
) -> None:
    bash = wire.call(0, id="c1", type="function", name="bash", arguments='{"command":"echo seen"}')
    counts = codec.encode({"choices": [], "usage": wire.USAGE})
    without_reason = codec.encode({"choices": [{"index": 0, "delta": bash}]})
    provider.then(streamed(without_reason, counts, b"[DONE]"), text("Done."))
    session = await api.create()
    _, called, answer = await api.ask(session, "look")
    assert (called["finish"], called["tokens"]["cache"]["read"]) == ("tool-calls", 30)
    assert called["content"][0]["state"]["status"] == "completed"
    assert answer["content"][0]["text"] == "Done."


async def test_thinking_inside_the_content_is_shown_as_reasoning(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(streamed(*wire.THINKING))
    session = await api.create()
    _, answer = await api.ask(session, "greet")
    parts = [(part["type"], part["text"]) for part in answer["content"]]
    assert parts == [("reasoning", "Ein Gruß?"), ("text", "Grüße 🌍")]
