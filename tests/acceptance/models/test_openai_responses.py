"""A Session with an OpenAI model, over real HTTP: what its wire carries and no other's does."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.acceptance.two_providers import FAKE, Pair, paired
from tests.contract.llm.protocols.openai_responses import recordings as wire
from tests.requirements import requirement
from tests.support.scripted_provider import SECRET, Call, Reply, ScriptedProvider, calls, text


@pytest.fixture
async def openai(tmp_path: Path, provider: ScriptedProvider) -> AsyncGenerator[Pair]:
    async with paired("openai-responses", tmp_path, provider, azure="@ai-sdk/azure") as opened:
        yield opened


def answering(*items: Sequence[bytes], store: bool = False) -> Reply:
    inner = [frame for item in items for frame in item]
    frames = [wire.created(store=store), *inner, wire.completed()]
    return Reply(pieces=tuple(wire.body_of([frame]) for frame in frames))


def bash(index: int, command: str) -> list[bytes]:
    return wire.call(index, "bash", f'{{"command":"{command}"}}')


@requirement("S92")
async def test_an_answer_is_asked_for_and_recorded(openai: Pair) -> None:
    openai.other.then(answering(wire.message(0, "Hel", "lo")))
    session = await openai.api.create()
    _, assistant = await openai.api.ask(session, "hi")
    assert [part["text"] for part in assistant["content"]] == ["Hello"]
    assert assistant["finish"] == "stop"
    assert assistant["tokens"] == {
        "input": 70, "output": 30, "reasoning": 20, "cache": {"read": 30, "write": 0}
    }  # fmt: skip
    (request,) = openai.other.requests
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert (request.body["model"], request.body["store"]) == ("gpt-5", False)
    assert request.body["prompt_cache_key"] == session
    system, user = openai.accepted(0)
    assert (system["role"], user["content"][0]["text"]) == ("system", "hi")


async def test_an_azure_deployment_is_reached_with_its_own_header(openai: Pair) -> None:
    openai.other.then(answering(wire.message(0, "Hello")))
    session = await openai.api.create(model={"id": "deployed", "providerID": "azure"})
    _, assistant = await openai.api.ask(session, "hi")
    assert assistant["content"][0]["text"] == "Hello"
    assert openai.other.requests[0].headers["api-key"] == SECRET
    assert "authorization" not in openai.other.requests[0].headers


@requirement("S161")
async def test_reasoning_and_calls_go_back_to_the_model_that_made_them(openai: Pair) -> None:
    openai.other.then(
        answering(wire.reasoning(0, ("hm",), ("so",)), bash(1, "echo seen")),
        answering(wire.message(0, "Done.")),
    )
    session = await openai.api.create()
    _, first, second = await openai.api.ask(session, "go")
    assert (first["finish"], second["content"][0]["text"]) == ("tool-calls", "Done.")
    thought, call, output = openai.accepted(1)[-3:]
    assert [part["text"] for part in thought["summary"]] == ["hm", "so"]
    assert thought["encrypted_content"] == "sealed"
    assert (call["call_id"], call["arguments"]) == ("call_a", '{"command":"echo seen"}')
    assert (output["call_id"], "seen" in output["output"]) == ("call_a", True)


@requirement("S198")
@pytest.mark.parametrize("store", [False, True])
@pytest.mark.parametrize("item", [wire.SEARCH, wire.COMPACTION], ids=["search", "compaction"])
async def test_what_the_provider_ran_itself_is_kept_and_sent_back(
    openai: Pair, item: JsonObject, store: bool
) -> None:
    openai.other.then(
        answering(wire.hosted(0, item), wire.message(1, "Found."), store=store),
        answering(wire.message(0, "Again.")),
    )
    session = await openai.api.create()
    _, assistant = await openai.api.ask(session, "search")
    assert assistant["content"][0]["provider"]["executed"]
    await openai.api.ask(session, "more")
    reference = {"type": "item_reference", "id": item["id"]}
    assert openai.accepted(1)[2] == (reference if store else item)


@requirement("S161", "S197")
async def test_reasoning_comes_back_after_a_turn_of_another_provider(openai: Pair) -> None:
    openai.other.then(
        answering(wire.reasoning(0, ("hm",)), bash(1, "echo one")),
        answering(wire.message(0, "First.")),
        answering(wire.message(0, "Third.")),
    )
    openai.fake.then(calls(Call("bash", {"command": "echo two"}, "c" * 90)), text("Second."))
    session = await openai.api.create()
    await openai.api.ask(session, "one")
    await openai.switch(session, FAKE)
    await openai.api.ask(session, "two")
    await openai.switch(session, openai.speaks.model)
    *_, last = await openai.api.ask(session, "three")
    assert last["content"][0]["text"] == "Third."
    # The other provider was told the reasoning as text, and nothing of its sealed form.
    assert b"sealed" not in openai.fake.requests[0].raw
    assert "hm" in openai.fake.requests[0].texts("assistant")[0]
    items = openai.accepted(2)
    (thought,) = [item for item in items if item.get("type") == "reasoning"]
    assert thought["encrypted_content"] == "sealed"
    made = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert made[0] == "call_a"
    assert len(made[1]) <= 64
