"""A Session with a Bedrock model, over real HTTP, alone and in turn with another provider's."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.bedrock_converse import recordings as wire
from tests.contract.llm.bedrock_converse.validator import faults
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

MODEL = "anthropic.claude-opus-4-8-v1:0"
BEDROCK = {"id": MODEL, "providerID": "bedrock"}
FAKE = {"id": "fake-model", "providerID": "fake"}


@pytest.fixture
async def bedrock() -> AsyncGenerator[ScriptedProvider]:
    """The same kind of server, with the other protocol in its script."""
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
async def api(
    tmp_path: Path, provider: ScriptedProvider, bedrock: ScriptedProvider
) -> AsyncGenerator[Api]:
    limit = {"context": 1_000_000, "output": 32_000}

    def entry(package: str, server: ScriptedProvider, model: str) -> JsonObject:
        return {
            "api": {"type": "aisdk", "package": package, "url": server.url},
            "models": {model: {"limit": limit}},
        }

    signed = entry("@ai-sdk/amazon-bedrock", bedrock, MODEL)
    signed["api"]["settings"] = {
        "region": "eu-west-1",
        "accessKeyId": "AKIDEXAMPLE",
        "secretAccessKey": SECRET,
    }
    providers = {
        "fake": entry("@ai-sdk/openai-compatible", provider, "fake-model"),
        "bedrock": signed,
    }
    place = make_place(tmp_path, provider, providers=providers, model=f"bedrock/{MODEL}")
    async with running(place) as instance:
        yield instance.api


def replying(frames: Sequence[bytes]) -> Reply:
    return Reply(pieces=tuple(frames))


def answering(*blocks: Sequence[bytes], why: str = "end_turn") -> Reply:
    frames = [frame for block in blocks for frame in block]
    return replying([wire.begin(), *frames, wire.reason(why), wire.counts()])


def accepted(request: Request) -> list[JsonObject]:
    """The messages of a request that breaks none of the service's rules."""
    assert faults(request.body, request.raw, MODEL) == []
    return request.messages


def bash(index: int, id: str, command: str) -> list[bytes]:
    return wire.call(index, id, "bash", codec.encode({"command": command}).decode())


async def test_an_answer_is_asked_for_and_recorded(api: Api, bedrock: ScriptedProvider) -> None:
    bedrock.then(answering(wire.text(0, "Hel", "lo")))
    session = await api.create()
    _, assistant = await api.ask(session, "hi")
    assert [part["text"] for part in assistant["content"]] == ["Hello"]
    assert (assistant["finish"], assistant["tokens"]["input"]) == ("stop", 25)
    (request,) = bedrock.requests
    assert "/eu-west-1/bedrock/aws4_request" in request.headers["authorization"]
    assert SECRET not in "".join(request.headers.values()) + request.raw.decode()
    assert request.body["inferenceConfig"] == {"maxTokens": 32_000}
    assert accepted(request)[0]["content"][0]["text"] == "hi"


@requirement("S161", "S197")
async def test_reasoning_and_calls_go_back_to_the_model_that_made_them(
    api: Api, bedrock: ScriptedProvider
) -> None:
    bedrock.then(
        answering(wire.reasoning(0, "hm"), bash(1, wire.READ, "echo seen"), why="tool_use"),
        answering(wire.text(0, "Done.")),
    )
    session = await api.create()
    _, first, second = await api.ask(session, "go")
    assert (first["finish"], second["content"][0]["text"]) == ("tool-calls", "Done.")
    answer, results = accepted(bedrock.requests[1])[-2:]
    thought, call = answer["content"]
    assert thought["reasoningContent"]["reasoningText"] == {"text": "hm", "signature": "c2ln"}
    assert call["toolUse"]["toolUseId"] == wire.READ
    assert call["toolUse"]["input"] == {"command": "echo seen"}
    result = results["content"][0]["toolResult"]
    assert result["toolUseId"] == wire.READ
    assert "seen" in result["content"][0]["text"]


async def test_what_the_provider_ran_itself_is_kept_and_sent_back(
    api: Api, bedrock: ScriptedProvider
) -> None:
    bedrock.then(replying(wire.HOSTED), answering(wire.text(0, "Again.")))
    session = await api.create()
    await api.ask(session, "search")
    await api.ask(session, "more")
    call, result, found = accepted(bedrock.requests[1])[1]["content"]
    assert (call["toolUse"]["type"], call["toolUse"]["toolUseId"]) == (
        "server_tool_use",
        wire.SEARCH,
    )
    assert result["toolResult"]["content"] == wire.FOUND
    assert found["text"] == "Found."


async def test_an_exception_inside_an_answer_ends_the_turn_and_not_the_session(
    api: Api, bedrock: ScriptedProvider
) -> None:
    failing = [wire.begin(), *wire.reasoning(0, "hm"), *wire.text(1, "half")]
    failing.append(wire.exception("validationException", "no such thing"))
    bedrock.then(
        replying(failing),
        refusal(400, {"message": "not so"}),
        answering(wire.text(0, "Fine.")),
    )
    session = await api.create()
    _, failed = await api.ask(session, "one")
    assert "validationException: no such thing" in failed["error"]["message"]
    *_, refused = await api.ask(session, "two")
    assert "not so" in refused["error"]["message"]
    *_, fine = await api.ask(session, "three")
    assert fine["content"][0]["text"] == "Fine."
    # Reasoning of a turn that failed is not proven any more.
    assert "reasoningContent" not in codec.encode(accepted(bedrock.requests[2])).decode()


@requirement("S161", "S197")
async def test_a_conversation_may_change_its_provider_back_and_forth(
    api: Api, provider: ScriptedProvider, bedrock: ScriptedProvider
) -> None:
    provider.then(
        calls(Call("bash", {"command": "echo one"}, "call_0"), saying="First."),
        calls(Call("bash", {"command": "echo two"}, "call_0")),
        text("Here.", reasoning=("a foreign ", "thought")),
        text("Back again."),
    )
    bedrock.then(
        answering(wire.reasoning(0, "own"), bash(1, wire.READ, "echo three"), why="tool_use"),
        answering(wire.text(0, "There.")),
    )
    session = await api.create(model=FAKE)
    await api.ask(session, "one")
    await api.post(f"/api/session/{session}/model", {"model": BEDROCK})
    await api.ask(session, "two")
    await api.post(f"/api/session/{session}/model", {"model": FAKE})
    *_, last = await api.ask(session, "three")
    assert last["content"][0]["text"] == "Back again."
    for request in bedrock.requests:
        sent = accepted(request)
        uses = [b["toolUse"]["toolUseId"] for m in sent for b in m["content"] if "toolUse" in b]
        # Both calls of the other provider had the same id.
        assert len(uses) == len({*uses}) >= 2
        assert "a foreign thought" in codec.encode(sent).decode()
    back = provider.requests[-1]
    assert [c["id"] for m in back.messages for c in m.get("tool_calls", ())][-1] == wire.READ
    assert "own" in "".join(said or "" for said in back.texts("assistant"))
    assert "c2ln" not in back.raw.decode()
