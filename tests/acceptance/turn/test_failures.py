"""A run that cannot go on says so where everyone can see it, and the Session goes on."""

import pytest

from perdure.core import limits
from perdure.schema.codec import JsonObject
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.scripted_provider import (
    SECRET,
    Call,
    Reply,
    ScriptedProvider,
    calls,
    cut,
    refusal,
    text,
)


async def failed_step(api: Api, session: str, words: str = "go") -> JsonObject:
    """Prompt, and the message that tells of the failure."""
    *_, last = await api.ask(session, words)
    assert last["type"] == "assistant"
    assert last["finish"] == "error"
    assert "completed" in last["time"]
    assert (await api.facts(session))[-1] == "step.failed"
    return last


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        ({"model": {"providerID": "zzz", "id": "yyy"}}, "zzz"),
        ({"model": {"providerID": "fake", "id": "yyy"}}, "yyy"),
        ({"model": {"providerID": "fake", "id": "fake-model", "variant": "loud"}}, "loud"),
        ({"agent": "nobody"}, "nobody"),
    ],
    ids=["provider", "model", "variant", "agent"],
)
async def test_a_selection_that_does_not_exist_fails_for_all_to_see(
    api: Api, provider: ScriptedProvider, selection: JsonObject, told: str
) -> None:
    session = await api.create(**selection)
    message = await failed_step(api, session)
    assert told in message["error"]["message"]
    assert provider.requests == []
    assert (await api.get("/api/session/active"))["data"] == {}


async def test_a_session_recovers_when_the_selection_is_corrected(
    api: Api, provider: ScriptedProvider
) -> None:
    session = await api.create(agent="nobody")
    await failed_step(api, session)
    await api.post(f"/api/session/{session}/agent", {"agent": "build"})
    *_, answer = await api.ask(session, "now")
    assert answer["content"][0]["text"] == "ok"
    first, second = provider.requests[0].texts("user")
    # An agent that exists is told of the skills it may use.
    assert (first, second.partition("\n")[0]) == ("go", "now")


async def test_a_provider_that_fails_for_a_moment_is_asked_again(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(refusal(503, retry_after_ms="1"), refusal(429, retry_after_ms="1"), text("back"))
    session = await api.create()
    *_, answer = await api.ask(session, "go")
    assert answer["content"][0]["text"] == "back"
    assert len(provider.requests) == 3
    assert provider.requests[0].raw == provider.requests[2].raw
    assert (await api.facts(session)).count("retried") == 2


async def test_a_provider_that_keeps_failing_ends_the_step_without_leaking(
    api: Api, provider: ScriptedProvider
) -> None:
    body = {"error": {"message": f"key {SECRET} said no. " + "blah " * 5_000}}
    provider.then(*(refusal(500, body, retry_after_ms="1") for _ in range(3)))
    session = await api.create()
    message = await failed_step(api, session)
    assert len(provider.requests) == 3
    told = message["error"]["message"]
    assert "HTTP 500" in told
    assert SECRET not in told
    assert len(told) < 700
    assert all(SECRET not in str(event) for event in await api.history(session))


async def test_a_refused_key_is_not_tried_again(api: Api, provider: ScriptedProvider) -> None:
    provider.then(refusal(401, {"error": {"message": "bad key"}}))
    session = await api.create()
    message = await failed_step(api, session)
    assert "bad key" in message["error"]["message"]
    assert len(provider.requests) == 1


@requirement("S162")
async def test_what_was_said_before_the_connection_broke_is_kept(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.otherwise = lambda request: cut("half an ", "answer")
    session = await api.create()
    messages = await api.ask(session, "go")
    steps = [message for message in messages if message["type"] == "assistant"]
    assert [step["content"][0]["text"] for step in steps] == ["half an answer"] * len(steps)
    assert all("error" in step for step in steps)
    # The last one is not asked for again, so the model is told what it had said.
    assert ["excluded" in step["time"] for step in steps] == [True] * (len(steps) - 1) + [False]
    assert len(steps) == len(provider.requests) == limits.RETRY_ATTEMPTS_MAX


@pytest.mark.parametrize(
    "reply",
    [
        Reply(pieces=(b"data: {nonsense\n\n",)),
        Reply(pieces=(b'data: {"choices": 7}\n\n',)),
        Reply(pieces=(b'data: {"error": {"message": "broken"}}\n\n',)),
        Reply(pieces=(b"data: \xff\xfe\n\n",)),
        refusal(404, b"<html><title>Not here</title></html>"),
    ],
    ids=["no-json", "wrong-shape", "error-event", "no-utf8", "web-page"],
)
async def test_nonsense_from_a_provider_fails_the_step_and_nothing_else(
    api: Api, provider: ScriptedProvider, reply: Reply
) -> None:
    provider.then(reply)
    session = await api.create()
    await failed_step(api, session)
    *_, answer = await api.ask(session, "again")
    assert answer["content"][0]["text"] == "ok"


async def test_a_provider_that_breaks_off_after_a_call_leaves_no_open_tool(
    api: Api, provider: ScriptedProvider
) -> None:
    whole = calls(Call("bash", {"command": "echo ran"}))
    provider.then(Reply(pieces=whole.pieces[:-2], ending="cut"))
    session = await api.create()
    message = await failed_step(api, session)
    tools = [part for part in message["content"] if part["type"] == "tool"]
    assert all(tool["state"]["status"] in {"completed", "error"} for tool in tools)
    await api.ask(session, "again")
    assert provider.requests[1].roles.count("tool") == len(tools)


async def test_a_queued_prompt_still_runs_after_the_one_before_failed(
    api: Api, provider: ScriptedProvider
) -> None:
    provider.then(refusal(400, {"error": {"message": "no"}}), text("fine"))
    session = await api.create()
    await api.prompt(session, "first", delivery="queue", resume=False)
    await api.prompt(session, "second", delivery="queue")
    await api.wait(session)
    *_, answer = await api.messages(session)
    assert answer["content"][0]["text"] == "fine"
