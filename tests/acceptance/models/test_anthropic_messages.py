"""A Session with an Anthropic model, over real HTTP: what its wire carries and no other's does."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.acceptance.two_providers import Pair, paired
from tests.contract.llm.protocols.anthropic import recordings as wire
from tests.requirements import requirement
from tests.support.scripted_provider import SECRET, Reply, ScriptedProvider

ECHO = "toolu_01AAAAAAAAAAAAAAAAAAAA"


@pytest.fixture
async def claude(tmp_path: Path, provider: ScriptedProvider) -> AsyncGenerator[Pair]:
    async with paired("anthropic-messages", tmp_path, provider) as opened:
        yield opened


async def test_an_answer_is_asked_for_and_recorded(claude: Pair) -> None:
    claude.other.then(Reply(pieces=tuple(wire.body_of([frame]) for frame in wire.TEXT)))
    session = await claude.api.create()
    _, assistant = await claude.api.ask(session, "hi")
    assert [part["text"] for part in assistant["content"]] == ["Hello"]
    assert (assistant["finish"], assistant["tokens"]["input"]) == ("stop", 25)
    (request,) = claude.other.requests
    assert request.headers["x-api-key"] == SECRET
    assert request.headers["anthropic-version"] == "2023-06-01"
    assert "authorization" not in request.headers
    assert (request.body["model"], request.body["max_tokens"]) == ("claude-test", 32_000)
    assert claude.accepted(0)[0]["content"][0]["text"] == "hi"


@requirement("S161")
async def test_thinking_and_calls_go_back_to_the_model_that_made_them(claude: Pair) -> None:
    asked = claude.speaks.asks(ECHO, "bash", {"command": "echo seen"})
    claude.other.then(asked, claude.speaks.says("Done."))
    session = await claude.api.create()
    _, first, second = await claude.api.ask(session, "go")
    assert (first["finish"], second["content"][-1]["text"]) == ("tool-calls", "Done.")
    answer, results = claude.accepted(1)[-2:]
    thought, call = answer["content"]
    assert thought == {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    assert (call["id"], call["input"]) == (ECHO, {"command": "echo seen"})
    (result,) = results["content"]
    assert (result["tool_use_id"], "seen" in result["content"]) == (ECHO, True)


async def test_what_the_provider_ran_itself_is_kept_and_sent_back(claude: Pair) -> None:
    hosted = Reply(pieces=tuple(wire.body_of([frame]) for frame in wire.HOSTED))
    claude.other.then(hosted, claude.speaks.says("Again."))
    session = await claude.api.create()
    await claude.api.ask(session, "search")
    await claude.api.ask(session, "more")
    call, result, found = claude.accepted(1)[1]["content"]
    assert (call["type"], call["input"]) == ("server_tool_use", {"query": "x"})
    assert (result["type"], result["content"]) == ("web_search_tool_result", wire.FOUND)
    assert found["text"] == "Found."
