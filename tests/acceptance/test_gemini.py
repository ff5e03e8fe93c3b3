"""A Session with a Gemini model, over real HTTP, alone and in turn with another provider's."""

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.contract.llm.gemini import recordings as wire
from tests.contract.llm.gemini.validator import faults
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

GEMINI = {"id": "gemini-3-test", "providerID": "gemini"}
FAKE = {"id": "fake-model", "providerID": "fake"}


@pytest.fixture
async def gemini() -> AsyncGenerator[ScriptedProvider]:
    """The same kind of server, with the other protocol in its script."""
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
async def api(
    tmp_path: Path, provider: ScriptedProvider, gemini: ScriptedProvider
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
        "gemini": entry("@ai-sdk/google", gemini, "gemini-3-test"),
    }
    place = make_place(tmp_path, provider, providers=providers, model="gemini/gemini-3-test")
    async with running(place) as instance:
        yield instance.api


def answering(*parts: JsonObject) -> Reply:
    """An answer with a chunk for each part."""
    *first, last = parts
    frames = [*(wire.chunk(part) for part in first), wire.chunk(last, why="STOP")]
    return Reply(pieces=tuple(wire.body_of([frame]) for frame in frames))


def accepted(request: Request) -> list[JsonObject]:
    """The contents of a request that breaks none of the provider's rules."""
    assert faults(request.body, request.raw) == []
    return request.body["contents"]


def bash(command: str, **fields: str) -> JsonObject:
    return wire.call("bash", {"command": command}, **fields)


async def test_an_answer_is_asked_for_and_recorded(api: Api, gemini: ScriptedProvider) -> None:
    gemini.then(answering(wire.said("Hel"), wire.said("lo")))
    session = await api.create()
    _, assistant = await api.ask(session, "hi")
    assert [part["text"] for part in assistant["content"]] == ["Hello"]
    assert (assistant["finish"], assistant["tokens"]["input"]) == ("stop", 25)
    (request,) = gemini.requests
    assert request.headers["x-goog-api-key"] == SECRET
    assert "authorization" not in request.headers
    assert accepted(request)[0]["parts"][0]["text"] == "hi"
    assert request.body["systemInstruction"]["parts"][0]["text"]


@requirement("S161", "S197")
async def test_thoughts_and_signatures_go_back_to_the_model_that_made_them(
    api: Api, gemini: ScriptedProvider
) -> None:
    gemini.then(
        answering(
            wire.thought("hm", thoughtSignature="dGg="),
            bash("echo seen", id="f1", signature="Yw=="),
            bash("echo also"),
        ),
        answering(wire.said("Done."), wire.said("", thoughtSignature="ZW5k")),
        answering(wire.said("Again.")),
    )
    session = await api.create()
    _, first, second = await api.ask(session, "go")
    assert (first["finish"], second["content"][0]["text"]) == ("tool-calls", "Done.")
    await api.ask(session, "more")
    answer, results = accepted(gemini.requests[1])[-2:]
    thought, call, other = answer["parts"]
    assert thought == {"text": "hm", "thought": True, "thoughtSignature": "dGg="}
    assert (call["functionCall"]["id"], call["thoughtSignature"]) == ("f1", "Yw==")
    assert "thoughtSignature" not in other
    seen, also = (part["functionResponse"] for part in results["parts"])
    assert (seen["id"], "seen" in seen["response"]["content"]) == ("f1", True)
    assert "also" in also["response"]["content"]
    said = accepted(gemini.requests[2])[-2]
    assert said["parts"] == [{"text": "Done.", "thoughtSignature": "ZW5k"}]


async def test_what_the_provider_ran_itself_is_kept_and_sent_back(
    api: Api, gemini: ScriptedProvider
) -> None:
    gemini.then(
        Reply(pieces=tuple(wire.body_of([frame]) for frame in wire.HOSTED)),
        answering(wire.said("Again.")),
    )
    session = await api.create()
    await api.ask(session, "compute")
    await api.ask(session, "more")
    assert accepted(gemini.requests[1])[1]["parts"] == [
        {"executableCode": wire.CODE},
        {"codeExecutionResult": wire.RAN},
        {"text": "It is 4."},
    ]


async def test_an_error_inside_an_answer_ends_the_turn_and_not_the_session(
    api: Api, gemini: ScriptedProvider
) -> None:
    failing = [
        wire.chunk(wire.thought("hm", thoughtSignature="dGg=")),
        wire.chunk(wire.said("half")),
        wire.error(400, "INVALID_ARGUMENT", "no such thing"),
    ]
    gemini.then(
        Reply(pieces=tuple(wire.body_of([frame]) for frame in failing)),
        refusal(400, codec.decode_any(wire.error(400, "INVALID_ARGUMENT", "not so"))),
        answering(wire.said("Fine.")),
    )
    session = await api.create()
    _, failed = await api.ask(session, "one")
    assert "INVALID_ARGUMENT: no such thing" in failed["error"]["message"]
    *_, refused = await api.ask(session, "two")
    assert "not so" in refused["error"]["message"]
    *_, fine = await api.ask(session, "three")
    assert fine["content"][0]["text"] == "Fine."
    # What was signed in a turn that failed is not sent as signed.
    assert "dGg=" not in codec.encode(accepted(gemini.requests[2])).decode()


@requirement("S161", "S197")
async def test_a_conversation_may_change_its_provider_back_and_forth(
    api: Api, provider: ScriptedProvider, gemini: ScriptedProvider
) -> None:
    provider.then(
        calls(Call("bash", {"command": "echo one"}, "call_0"), saying="First."),
        calls(Call("bash", {"command": "echo two"}, "call_0")),
        text("Here.", reasoning=("a foreign ", "thought")),
        text("Back again."),
    )
    gemini.then(
        answering(wire.thought("own"), bash("echo three", signature="Yw==")),
        answering(wire.said("There.")),
    )
    session = await api.create(model=FAKE)
    await api.ask(session, "one")
    await api.post(f"/api/session/{session}/model", {"model": GEMINI})
    await api.ask(session, "two")
    await api.post(f"/api/session/{session}/model", {"model": FAKE})
    *_, last = await api.ask(session, "three")
    assert last["content"][0]["text"] == "Back again."
    for request in gemini.requests:
        sent = codec.encode(accepted(request)).decode()
        assert "a foreign thought" in sent
        assert "echo one" in sent
        assert "call_0" not in sent
    back = provider.requests[-1]
    assert "own" in "".join(said or "" for said in back.texts("assistant"))
    assert "Yw==" not in back.raw.decode()
