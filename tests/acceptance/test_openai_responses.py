"""A Session with an OpenAI model, over real HTTP, alone and in turn with another provider's."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.openai_responses import recordings as wire
from tests.contract.llm.openai_responses.validator import faults
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

GPT = {"id": "gpt-5", "providerID": "gpt"}
FAKE = {"id": "fake-model", "providerID": "fake"}


@pytest.fixture
async def openai() -> AsyncGenerator[ScriptedProvider]:
    """The same kind of server, with the other protocol in its script."""
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
async def api(
    tmp_path: Path, provider: ScriptedProvider, openai: ScriptedProvider
) -> AsyncGenerator[Api]:
    def entry(package: str, url: str, model: str) -> JsonObject:
        return {
            "api": {"type": "aisdk", "package": package, "url": url},
            "request": {"body": {"apiKey": SECRET}},
            "models": {model: {"limit": {"context": 1_000_000, "output": 32_000}}},
        }

    providers = {
        "fake": entry("@ai-sdk/openai-compatible", provider.url, "fake-model"),
        "gpt": entry("@ai-sdk/openai", openai.url, "gpt-5"),
        "azure": entry("@ai-sdk/azure", openai.url, "deployed"),
    }
    place = make_place(tmp_path, provider, providers=providers, model="gpt/gpt-5")
    async with running(place) as instance:
        yield instance.api


def streamed(frames: Sequence[bytes]) -> Reply:
    return Reply(pieces=tuple(wire.body_of([frame]) for frame in frames))


def answering(*items: Sequence[bytes]) -> Reply:
    inner = [frame for item in items for frame in item]
    return streamed([wire.created(), *inner, wire.completed()])


def bash(index: int, command: str) -> list[bytes]:
    return wire.call(index, "bash", codec.encode({"command": command}).decode())


def accepted(request: Request) -> list[JsonObject]:
    """The input of a request that breaks none of the provider's rules."""
    assert faults(request.body) == []
    return request.body["input"]


async def switch(api: Api, session: str, model: JsonObject) -> None:
    await api.post(f"/api/session/{session}/model", {"model": model})


@requirement("S92")
async def test_an_answer_is_asked_for_and_recorded(api: Api, openai: ScriptedProvider) -> None:
    openai.then(answering(wire.message(0, "Hel", "lo")))
    session = await api.create()
    _, assistant = await api.ask(session, "hi")
    assert [part["text"] for part in assistant["content"]] == ["Hello"]
    assert assistant["finish"] == "stop"
    assert assistant["tokens"] == {
        "input": 70, "output": 30, "reasoning": 20, "cache": {"read": 30, "write": 0}
    }  # fmt: skip
    (request,) = openai.requests
    assert request.headers["authorization"] == f"Bearer {SECRET}"
    assert (request.body["model"], request.body["store"]) == ("gpt-5", False)
    assert request.body["prompt_cache_key"] == session
    system, user = accepted(request)
    assert (system["role"], user["content"][0]["text"]) == ("system", "hi")


async def test_an_azure_deployment_is_reached_with_its_own_header(
    api: Api, openai: ScriptedProvider
) -> None:
    openai.then(answering(wire.message(0, "Hello")))
    session = await api.create(model={"id": "deployed", "providerID": "azure"})
    _, assistant = await api.ask(session, "hi")
    assert assistant["content"][0]["text"] == "Hello"
    assert openai.requests[0].headers["api-key"] == SECRET
    assert "authorization" not in openai.requests[0].headers


@requirement("S161")
async def test_reasoning_and_calls_go_back_to_the_model_that_made_them(
    api: Api, openai: ScriptedProvider
) -> None:
    openai.then(
        answering(wire.reasoning(0, ("hm",), ("so",)), bash(1, "echo seen")),
        answering(wire.message(0, "Done.")),
    )
    session = await api.create()
    _, first, second = await api.ask(session, "go")
    assert (first["finish"], second["content"][0]["text"]) == ("tool-calls", "Done.")
    thought, call, output = accepted(openai.requests[1])[-3:]
    assert [part["text"] for part in thought["summary"]] == ["hm", "so"]
    assert thought["encrypted_content"] == "sealed"
    assert (call["call_id"], call["arguments"]) == ("call_a", '{"command":"echo seen"}')
    assert (output["call_id"], "seen" in output["output"]) == ("call_a", True)


@requirement("S198")
@pytest.mark.parametrize("store", [False, True])
async def test_what_the_provider_ran_itself_is_kept_and_sent_back(
    api: Api, openai: ScriptedProvider, store: bool
) -> None:
    frames = [*wire.hosted(0, wire.SEARCH), *wire.message(1, "Found.")]
    openai.then(
        streamed([wire.created(store=store), *frames, wire.completed()]),
        answering(wire.message(0, "Again.")),
    )
    session = await api.create()
    _, assistant = await api.ask(session, "search")
    assert assistant["content"][0]["provider"]["executed"]
    await api.ask(session, "more")
    reference = {"type": "item_reference", "id": "ws_1"}
    assert accepted(openai.requests[1])[2] == (reference if store else wire.SEARCH)


async def test_an_error_inside_an_answer_ends_the_turn_and_not_the_session(
    api: Api, openai: ScriptedProvider
) -> None:
    failing = [wire.created(), *wire.reasoning(0, ("hm",)), *wire.message(1, "half")]
    failing.append(wire.event("error", code="invalid_prompt", message=f"no {SECRET}"))
    openai.then(
        streamed(failing),
        refusal(400, {"error": {"type": "x_error", "message": "not so"}}),
        answering(wire.message(0, "Fine.")),
    )
    session = await api.create()
    _, failed = await api.ask(session, "one")
    assert "invalid_prompt: no [redacted]" in failed["error"]["message"]
    *_, refused = await api.ask(session, "two")
    assert "not so" in refused["error"]["message"]
    *_, fine = await api.ask(session, "three")
    assert fine["content"][0]["text"] == "Fine."
    # Reasoning of a turn that failed may not be whole; it does not go back.
    assert {item.get("type") for item in accepted(openai.requests[2])} == {None}


@requirement("S161", "S197")
async def test_a_conversation_may_change_its_provider_back_and_forth(
    api: Api, provider: ScriptedProvider, openai: ScriptedProvider
) -> None:
    openai.then(answering(wire.reasoning(0, ("hm",)), bash(1, "echo one")))
    openai.then(answering(wire.message(0, "First.")))
    provider.then(calls(Call("bash", {"command": "echo two"}, "c" * 90)), text("Second."))
    openai.then(answering(wire.message(0, "Third.")))
    session = await api.create()
    await api.ask(session, "one")
    await switch(api, session, FAKE)
    await api.ask(session, "two")
    await switch(api, session, GPT)
    *_, last = await api.ask(session, "three")
    assert last["content"][0]["text"] == "Third."
    # The other provider was told the reasoning as text, and nothing of its sealed form.
    assert b"sealed" not in provider.requests[0].raw
    assert "hm" in provider.requests[0].texts("assistant")[0]
    items = accepted(openai.requests[2])
    (thought,) = [item for item in items if item.get("type") == "reasoning"]
    assert thought["encrypted_content"] == "sealed"
    made = [item["call_id"] for item in items if item.get("type") == "function_call"]
    assert made[0] == "call_a"
    assert len(made[1]) <= 64
