"""A Session with a Bedrock model, over real HTTP: what its wire carries and no other's does."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.acceptance.two_providers import Pair, paired
from tests.contract.llm.protocols.bedrock import recordings as wire
from tests.requirements import requirement
from tests.support.scripted_provider import SECRET, Reply, ScriptedProvider


@pytest.fixture
async def bedrock(tmp_path: Path, provider: ScriptedProvider) -> AsyncGenerator[Pair]:
    async with paired("bedrock-converse", tmp_path, provider) as opened:
        yield opened


async def test_an_answer_is_asked_for_and_recorded(bedrock: Pair) -> None:
    bedrock.other.then(Reply(pieces=tuple(wire.TEXT)))
    session = await bedrock.api.create()
    _, assistant = await bedrock.api.ask(session, "hi")
    assert [part["text"] for part in assistant["content"]] == ["Hello"]
    assert (assistant["finish"], assistant["tokens"]["input"]) == ("stop", 25)
    (request,) = bedrock.other.requests
    assert "/eu-west-1/bedrock/aws4_request" in request.headers["authorization"]
    assert SECRET not in "".join(request.headers.values()) + request.raw.decode()
    assert request.body["inferenceConfig"] == {"maxTokens": 32_000}
    assert bedrock.accepted(0)[0]["content"][0]["text"] == "hi"


@requirement("S161", "S197")
async def test_reasoning_and_calls_go_back_to_the_model_that_made_them(bedrock: Pair) -> None:
    asked = bedrock.speaks.asks(wire.READ, "bash", {"command": "echo seen"})
    bedrock.other.then(asked, bedrock.speaks.says("Done."))
    session = await bedrock.api.create()
    _, first, second = await bedrock.api.ask(session, "go")
    assert (first["finish"], second["content"][-1]["text"]) == ("tool-calls", "Done.")
    answer, results = bedrock.accepted(1)[-2:]
    thought, call = answer["content"]
    assert thought["reasoningContent"]["reasoningText"] == {"text": "hm", "signature": "c2ln"}
    assert call["toolUse"]["toolUseId"] == wire.READ
    assert call["toolUse"]["input"] == {"command": "echo seen"}
    result = results["content"][0]["toolResult"]
    assert result["toolUseId"] == wire.READ
    assert "seen" in result["content"][0]["text"]


async def test_what_the_provider_ran_itself_is_kept_and_sent_back(bedrock: Pair) -> None:
    bedrock.other.then(Reply(pieces=tuple(wire.HOSTED)), bedrock.speaks.says("Again."))
    session = await bedrock.api.create()
    await bedrock.api.ask(session, "search")
    await bedrock.api.ask(session, "more")
    call, result, found = bedrock.accepted(1)[1]["content"]
    assert call["toolUse"]["type"] == "server_tool_use"
    assert call["toolUse"]["toolUseId"] == wire.SEARCH
    assert result["toolResult"]["content"] == wire.FOUND
    assert found["text"] == "Found."
