"""A Session with an Anthropic model, over real HTTP, alone and in turn with another provider's."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.anthropic_messages import recordings as wire
from tests.contract.llm.anthropic_messages.validator import faults
from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.place import make_place
from tests.support.scripted_provider import (
    SECRET,
    Call,
    Reply,
    Request,
    ScriptedProvider,
    calls,
    refusal,
    scripted_provider,
    text,
)

CLAUDE = {"id": "claude-test", "providerID": "claude"}
FAKE = {"id": "fake-model", "providerID": "fake"}
ECHO = "toolu_01AAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
async def claude() -> AsyncGenerator[ScriptedProvider]:
    """The same kind of server, with the other protocol in its script."""
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
async def api(
    tmp_path: Path, provider: ScriptedProvider, claude: ScriptedProvider
) -> AsyncGenerator[Api]:
    limit = {"context": 1_000_000, "output": 32_000}

    def entry(package: str, server: ScriptedProvider, model: str) -> JsonObject:
        return {
            "api": {"type": "aisdk", "package": package, "url": server.url},
            "request": {"body": {"apiKey": SECRET}},
            "models": {model: {"limit": limit}},
        }

    providers = {
        "fake": entry("@ai-sdk/openai-compatible", provider, "fake-model"),
        "claude": entry("@ai-sdk/anthropic", claude, "claude-test"),
    }
    place = make_place(tmp_path, provider, providers=providers, model="claude/claude-test")
    async with running(place) as instance:
        yield instance.api


def answering(*frames: Sequence[bytes], why: str = "end_turn") -> Reply:
    whole = [wire.begin(), *(frame for block in frames for frame in block), wire.reason(why)]
    return Reply(pieces=tuple(wire.body_of([frame]) for frame in (*whole, wire.STOP)))


def accepted(request: Request) -> list[JsonObject]:
    """The messages of a request that breaks none of the provider's rules."""
    assert faults(request.body, request.raw) == []
    return request.messages


def bash(index: int, id: str, command: str) -> list[bytes]:
    return wire.call(index, id, "bash", codec.encode({"command": command}).decode())


async def test_an_answer_is_asked_for_and_recorded(api: Api, claude: ScriptedProvider) -> None:
    claude.then(answering(wire.text(0, "Hel", "lo")))
    session = await api.create()
    _, assistant = await api.ask(session, "hi")
    assert [part["text"] for part in assistant["content"]] == ["Hello"]
    assert (assistant["finish"], assistant["tokens"]["input"]) == ("stop", 25)
    (request,) = claude.requests
    assert request.headers["x-api-key"] == SECRET
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert (request.body["model"], request.body["max_tokens"]) == ("claude-test", 32_000)
    assert accepted(request)[0]["content"][0]["text"] == "hi"


@requirement("S161")
async def test_thinking_and_calls_go_back_to_the_model_that_made_them(
    api: Api, claude: ScriptedProvider
) -> None:
    claude.then(
        answering(wire.thinking(0, "hm"), bash(1, ECHO, "echo seen"), why="tool_use"),
        answering(wire.text(0, "Done.")),
    )
    session = await api.create()
    _, first, second = await api.ask(session, "go")
    assert (first["finish"], second["content"][0]["text"]) == ("tool-calls", "Done.")
    answer, results = accepted(claude.requests[1])[-2:]
    thought, call = answer["content"]
    assert thought == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert (call["id"], call["input"]) == (ECHO, {"command": "echo seen"})
    (result,) = results["content"]
    assert (result["tool_use_id"], "seen" in result["content"]) == (ECHO, True)


async def test_what_the_provider_ran_itself_is_kept_and_sent_back(
    api: Api, claude: ScriptedProvider
) -> None:
    claude.then(
        Reply(pieces=tuple(wire.body_of([frame]) for frame in wire.HOSTED)),
        answering(wire.text(0, "Again.")),
    )
    session = await api.create()
    await api.ask(session, "search")
    await api.ask(session, "more")
    call, result, found = accepted(claude.requests[1])[1]["content"]
    assert (call["type"], call["input"]) == ("server_tool_use", {"query": "x"})
    assert (result["type"], result["content"]) == ("web_search_tool_result", wire.FOUND)
    assert found["text"] == "Found."


async def test_an_error_inside_an_answer_ends_the_turn_and_not_the_session(
    api: Api, claude: ScriptedProvider
) -> None:
    failing = [wire.begin(), *wire.thinking(0, "hm"), *wire.text(1, "half")]
    failing.append(wire.error("invalid_request_error", "no such thing"))
    claude.then(
        Reply(pieces=tuple(wire.body_of([frame]) for frame in failing)),
        refusal(400, {"type": "error", "error": {"type": "x_error", "message": "not so"}}),
        answering(wire.text(0, "Fine.")),
    )
    session = await api.create()
    _, failed = await api.ask(session, "one")
    assert "invalid_request_error: no such thing" in failed["error"]["message"]
    *_, refused = await api.ask(session, "two")
    assert "not so" in refused["error"]["message"]
    *_, fine = await api.ask(session, "three")
    assert fine["content"][0]["text"] == "Fine."
    # Thinking of a turn that failed is not proven any more; it goes back as text.
    kinds = {b["type"] for m in accepted(claude.requests[2]) for b in m["content"]}
    assert kinds == {"text"}


@requirement("S161", "S197")
async def test_a_conversation_may_change_its_provider_back_and_forth(
    api: Api, provider: ScriptedProvider, claude: ScriptedProvider
) -> None:
    provider.then(
        calls(Call("bash", {"command": "echo one"}, "call_0"), saying="First."),
        calls(Call("bash", {"command": "echo two"}, "call_0")),
        text("Here.", reasoning=("a foreign ", "thought")),
        text("Back again."),
    )
    claude.then(
        answering(wire.thinking(0, "own"), bash(1, ECHO, "echo three"), why="tool_use"),
        answering(wire.text(0, "There.")),
    )
    session = await api.create(model=FAKE)
    await api.ask(session, "one")
    await api.post(f"/api/session/{session}/model", {"model": CLAUDE})
    await api.ask(session, "two")
    await api.post(f"/api/session/{session}/model", {"model": FAKE})
    *_, last = await api.ask(session, "three")
    assert last["content"][0]["text"] == "Back again."
    for request in claude.requests:
        sent = accepted(request)
        ids = [b["id"] for m in sent for b in m["content"] if b["type"] == "tool_use"]
        # Both calls of the other provider had the same id.
        assert len(ids) == len({*ids}) >= 2
        assert "a foreign thought" in codec.encode(sent).decode()
    back = provider.requests[-1]
    assert [c["id"] for m in back.messages for c in m.get("tool_calls", ())][-1] == ECHO
    assert "own" in "".join(said or "" for said in back.texts("assistant"))
    assert "c2ln" not in back.raw.decode()
