"""A Session with a Gemini model, over real HTTP: what its wire carries and no other's does."""

from collections.abc import AsyncGenerator, Sequence
from pathlib import Path

import pytest

from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.acceptance.two_providers import FAKE, Pair, paired
from tests.contract.llm.protocols.gemini import recordings as wire
from tests.requirements import requirement
from tests.support.scripted_provider import SECRET, Call, Reply, ScriptedProvider, calls, text


@pytest.fixture
async def gemini(tmp_path: Path, provider: ScriptedProvider) -> AsyncGenerator[Pair]:
    async with paired("gemini", tmp_path, provider) as opened:
        yield opened


def streamed(frames: Sequence[bytes]) -> Reply:
    return Reply(pieces=tuple(wire.body_of([frame]) for frame in frames))


def answering(*parts: JsonObject) -> Reply:
    """An answer with a chunk for each part."""
    *first, last = parts
    return streamed([*(wire.chunk(part) for part in first), wire.chunk(last, why="STOP")])


def bash(command: str, **fields: str) -> JsonObject:
    return wire.call("bash", {"command": command}, **fields)


async def test_an_answer_is_asked_for_and_recorded(gemini: Pair) -> None:
    gemini.other.then(streamed(wire.TEXT))
    session = await gemini.api.create()
    _, assistant = await gemini.api.ask(session, "hi")
    assert [part["text"] for part in assistant["content"]] == ["Hello"]
    assert (assistant["finish"], assistant["tokens"]["input"]) == ("stop", 25)
    (request,) = gemini.other.requests
    assert request.headers["x-goog-api-key"] == SECRET
    assert "authorization" not in request.headers
    assert gemini.accepted(0)[0]["parts"][0]["text"] == "hi"
    assert request.body["systemInstruction"]["parts"][0]["text"]


async def test_images_and_tools_of_the_provider_go_back_as_they_came(gemini: Pair) -> None:
    gemini.other.then(streamed(wire.IMAGE), streamed(wire.TOOLS), streamed(wire.TEXT))
    session = await gemini.api.create()
    _, painted = await gemini.api.ask(session, "paint")
    *_, searched = await gemini.api.ask(session, "search")
    await gemini.api.ask(session, "more")
    assert [part["type"] for part in painted["content"]] == ["text", "tool", "text"]
    assert painted["content"][1]["state"]["status"] == "completed"
    assert searched["content"][0]["name"] == "google_search_web"
    _, first, _, second, _ = gemini.accepted(2)
    assert first["parts"] == [
        {"text": "Here: "},
        {"inlineData": wire.PICTURE, "thoughtSignature": "cGljdHVyZQ=="},
        {"text": "🌍"},
    ]
    assert second["parts"] == [
        {"toolCall": wire.SEARCHED, "thoughtSignature": "c2VhcmNo"},
        {"toolResponse": wire.RESULTS, "thoughtSignature": "Zm91bmQ="},
        {"text": "Found."},
    ]


@requirement("S161", "S197")
async def test_thoughts_and_signatures_go_back_to_the_model_that_made_them(gemini: Pair) -> None:
    gemini.other.then(
        answering(
            wire.thought("hm", thoughtSignature="dGg="),
            bash("echo seen", id="f1", signature="Yw=="),
            bash("echo also"),
        ),
        answering(wire.said("Done."), wire.said("", thoughtSignature="ZW5k")),
        answering(wire.said("Again.")),
    )
    session = await gemini.api.create()
    _, first, second = await gemini.api.ask(session, "go")
    assert (first["finish"], second["content"][0]["text"]) == ("tool-calls", "Done.")
    await gemini.api.ask(session, "more")
    answer, results = gemini.accepted(1)[-2:]
    thought, call, other = answer["parts"]
    assert thought == {"text": "hm", "thought": True, "thoughtSignature": "dGg="}
    assert (call["functionCall"]["id"], call["thoughtSignature"]) == ("f1", "Yw==")
    assert "thoughtSignature" not in other
    seen, also = (part["functionResponse"] for part in results["parts"])
    assert (seen["id"], "seen" in seen["response"]["content"]) == ("f1", True)
    assert "also" in also["response"]["content"]
    said = gemini.accepted(2)[-2]
    assert said["parts"] == [{"text": "Done.", "thoughtSignature": "ZW5k"}]


async def test_what_the_provider_ran_itself_is_kept_and_sent_back(gemini: Pair) -> None:
    gemini.other.then(streamed(wire.HOSTED), answering(wire.said("Again.")))
    session = await gemini.api.create()
    await gemini.api.ask(session, "compute")
    await gemini.api.ask(session, "more")
    assert gemini.accepted(1)[1]["parts"] == [
        {"executableCode": wire.CODE},
        {"codeExecutionResult": wire.RAN},
        {"text": "It is 4."},
    ]


async def test_ids_of_another_providers_calls_are_not_told(gemini: Pair) -> None:
    gemini.fake.then(calls(Call("bash", {"command": "echo one"}, "call_0")), text("First."))
    gemini.other.then(gemini.speaks.says("Second."))
    session = await gemini.api.create(model=FAKE)
    await gemini.api.ask(session, "one")
    await gemini.switch(session, gemini.speaks.model)
    await gemini.api.ask(session, "two")
    told = codec.encode(gemini.accepted(0)).decode()
    assert "echo one" in told
    assert "call_0" not in told
