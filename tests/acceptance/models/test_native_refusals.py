"""A provider refuses what it made itself: the Session goes on without it, and remembers that."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pytest

from perdure.schema.codec import JsonObject
from tests.acceptance.dialects import DIALECTS, Dialect
from tests.support.instance import running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import (
    Reply,
    Request,
    ScriptedProvider,
    refusal,
    scripted_provider,
    text,
)

REFUSALS: Final[Mapping[str, str]] = {
    "openai-chat": "'messages.2' : property 'reasoning_content' is unsupported",
    "anthropic-messages": "messages.1.content.0: Invalid `signature` in `thinking` block",
    "openai-responses": "The encrypted content gAAA could not be verified.",
    "gemini": "Thought signature is not valid",
    "bedrock-converse": "messages.1.content.0: Invalid `signature` in `thinking` block",
}
OWN: Final = "toolu_01AAAAAAAAAAAAAAAAAAAA"


@pytest.fixture(params=DIALECTS)
def speaks(request: pytest.FixtureRequest) -> Dialect:
    return DIALECTS[request.param]


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider, speaks: Dialect) -> ProjectFolders:
    model = f"{speaks.name}/{speaks.model_id}"
    return make_folders(
        tmp_path, provider, providers={speaks.name: speaks.entry(provider)}, model=model
    )


def brings_back(speaks: Dialect, request: Request) -> bool:
    """Whether a request has reasoning in its native form."""
    mark = "reasoning_content" if speaks.seal is None else speaks.seal
    return mark.encode() in request.raw


def thinks(speaks: Dialect) -> Reply:
    """It thinks, and then says something."""
    return text("Fine.", reasoning=["hm"]) if speaks.seal is None else speaks.says("Fine.")


def text_of(message: JsonObject) -> list[str]:
    return [part["text"] for part in message["content"] if part["type"] == "text"]


async def test_what_is_refused_is_sent_once_more_and_remembered_over_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider, speaks: Dialect
) -> None:
    provider.then(
        speaks.asks(OWN, "bash", {"command": "echo seen"}),
        refusal(400, speaks.refuses(REFUSALS[speaks.name])),
        thinks(speaks),
        speaks.says("Goes on."),
    )
    async with running(folders) as instance:
        session = await instance.api.create()
        *_, healed = await instance.api.ask(session, "one")
        assert (text_of(healed), healed["finish"]) == (["Fine."], "stop")
        await instance.api.ask(session, "two")
    provider.then(speaks.says("Still."))
    async with running(folders) as instance:
        *_, still = await instance.api.ask(session, "three")
        assert text_of(still) == ["Still."]
    asked, refused, again, later, after_restart = provider.requests
    assert brings_back(speaks, refused)
    assert not brings_back(speaks, again)
    assert all(speaks.faults(each) == [] for each in provider.requests)
    assert b"seen" in again.raw
    # What was sent without native parts begins every later request; what was said since has them.
    for before, now in ((again, later), (later, after_restart)):
        sent = speaks.items(before)
        assert speaks.items(now)[: len(sent)] == sent
    assert brings_back(speaks, later)
    assert asked.body != refused.body


async def test_a_refusal_without_any_native_part_is_not_repeated(
    folders: ProjectFolders, provider: ScriptedProvider, speaks: Dialect
) -> None:
    provider.then(refusal(400, speaks.refuses(REFUSALS[speaks.name])))
    async with running(folders) as instance:
        session = await instance.api.create()
        *_, failed = await instance.api.ask(session, "one")
        assert REFUSALS[speaks.name][:20] in failed["error"]["message"]
    assert len(provider.requests) == 1


async def test_a_second_refusal_ends_the_turn(
    folders: ProjectFolders, provider: ScriptedProvider, speaks: Dialect
) -> None:
    refused = refusal(400, speaks.refuses(REFUSALS[speaks.name]))
    provider.then(thinks(speaks), refused, refused, speaks.says("Goes on."))
    async with running(folders) as instance:
        session = await instance.api.create()
        await instance.api.ask(session, "one")
        *_, failed = await instance.api.ask(session, "two")
        assert "error" in failed
        *_, fine = await instance.api.ask(session, "three")
        assert text_of(fine) == ["Goes on."]
    assert len(provider.requests) == 4


async def test_native_parts_do_not_go_to_another_address(
    folders: ProjectFolders, provider: ScriptedProvider, speaks: Dialect
) -> None:
    provider.then(thinks(speaks))
    async with running(folders) as instance:
        session = await instance.api.create()
        _, answer = await instance.api.ask(session, "one")
    origin = f"http://127.0.0.1:{provider.port}"
    assert answer["route"] == {"origin": origin, "model": speaks.model_id}
    async with scripted_provider() as elsewhere:
        # The same provider and model, configured to be somewhere else now.
        elsewhere.then(speaks.says("Moved."))
        written = folders.project / "opencode.json"
        there = elsewhere.url.encode()
        written.write_bytes(written.read_bytes().replace(provider.url.encode(), there))
        async with running(folders) as instance:
            *_, answer = await instance.api.ask(session, "two")
        assert text_of(answer) == ["Moved."]
        (request,) = elsewhere.requests
        assert not brings_back(speaks, request)
        assert b"hm" in request.raw
