"""A Session with an Anthropic model, over real HTTP: what its wire carries and no other's does."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from perdure.core import limits
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


def reply(frames: Sequence[bytes]) -> Reply:
    return Reply(pieces=tuple(wire.body_of([frame]) for frame in frames))


@pytest.mark.parametrize("pauses", [1, 3])
async def test_a_paused_answer_goes_on_without_a_word_of_ours(claude: Pair, pauses: int) -> None:
    claude.other.then(*[reply(wire.PAUSED)] * pauses, claude.speaks.says("Done."))
    session = await claude.api.create()
    _, *steps = await claude.api.ask(session, "search")
    assert len(steps) == pauses + 1
    assert all("error" not in step for step in steps)
    assert steps[-1]["content"][-1]["text"] == "Done."
    *_, answer, pending = claude.other.requests[1].body["messages"]
    assert (answer["role"], pending["role"]) == ("assistant", "assistant")
    assert [block["type"] for block in answer["content"]] == [
        "server_tool_use",
        "web_search_tool_result",
        "text",
    ]
    (asked,) = pending["content"]
    assert (asked["id"], asked["input"]) == ("srvtoolu_01B", {"query": "y"})
    # Later the call has no result, so it is left out.
    claude.other.then(claude.speaks.says("Fine."))
    await claude.api.ask(session, "and now?")
    assert "srvtoolu_01B" not in claude.other.requests[-1].raw.decode()
    claude.accepted(pauses + 1)


async def test_a_provider_that_pauses_for_ever_is_not_asked_for_ever(claude: Pair) -> None:
    claude.other.otherwise = lambda request: reply(wire.PAUSED)
    session = await claude.api.create()
    _, *steps = await claude.api.ask(session, "search")
    assert len(steps) == limits.ANSWER_PAUSES_MAX + 1


@pytest.mark.parametrize("frames", [wire.MCP, wire.COMPACTED], ids=["mcp", "compacted"])
async def test_hosted_blocks_of_every_kind_go_back_as_they_came(
    claude: Pair, frames: Sequence[bytes]
) -> None:
    claude.other.then(reply(frames), claude.speaks.says("Again."))
    session = await claude.api.create()
    await claude.api.ask(session, "go")
    await claude.api.ask(session, "more")
    sent = claude.accepted(1)[1]["content"]
    if frames is wire.COMPACTED:
        assert sent[0] == {"type": "compaction", "content": "So far: grüße."}
        return
    made, result, _ = sent
    assert made == {
        "type": "mcp_tool_use",
        "server_name": "files",
        "id": "mcptoolu_01A",
        "name": "echo",
        "input": {"say": "seen 🌍"},
    }
    assert result == {
        "type": "mcp_tool_result",
        "tool_use_id": "mcptoolu_01A",
        "is_error": False,
        "content": wire.SAID,
    }


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
