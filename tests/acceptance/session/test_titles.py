"""Titles that a small model makes, beside the conversation and never instead of a person."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from perdure.host.clock import SystemClock
from perdure.schema.codec import JsonObject
from tests.support.api import PATIENCE_SECONDS
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import (
    Reply,
    Request,
    ScriptedProvider,
    cut,
    refusal,
    text,
)

PROMPT = "Please fix the login page of our shop; it shows an error since yesterday"


def configured(provider: ScriptedProvider, **title: object) -> JsonObject:
    large = {"cost": {"input": 1, "output": 10}}
    small = {
        "cost": {"input": 0.1, "output": 0.2},
        "time": {"released": SystemClock().now_millis()},
    }
    return {
        "agents": {"title": title} if title else {},
        "providers": {
            "fake": {
                "api": {
                    "type": "aisdk",
                    "package": "@ai-sdk/openai-compatible",
                    "url": provider.url,
                },
                "models": {"fake-model": large, "fake-mini": small},
            }
        },
    }


class Namer:
    """Answers requests for titles, and holds them while it is told to."""

    def __init__(self, provider: ScriptedProvider) -> None:
        self.asked: list[Request] = []
        self.reply = text("Repair the login")
        provider.otherwise = self._answer

    def _answer(self, request: Request) -> Reply:
        if request.body["model"] == "fake-mini":
            self.asked.append(request)
            return self.reply
        return text("ok")


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider, **configured(provider))


@pytest.fixture
def namer(provider: ScriptedProvider) -> Namer:
    return Namer(provider)


async def test_the_small_model_names_the_session_after_its_first_answer(
    instance: Instance, provider: ScriptedProvider, namer: Namer
) -> None:
    api = instance.api
    session = await api.create()
    async with asyncio.timeout(PATIENCE_SECONDS), api.events(session) as stream:
        await api.prompt(session, PROMPT)
        seen = await stream.until("renamed")
    assert [event["type"] for event in seen][-2:] == [
        "session.next.step.ended",
        "session.next.renamed",
    ]
    assert (await api.session(session))["title"] == "Repair the login"
    (asked,) = namer.asked
    assert asked.body["max_tokens"] <= 1_000
    assert "tools" not in asked.body
    await api.ask(session, "and now the logout")
    assert len(namer.asked) == 1
    assert len(provider.requests) == 3


async def test_a_title_that_a_person_chose_meanwhile_stays(
    instance: Instance, provider: ScriptedProvider, namer: Namer
) -> None:
    api = instance.api
    hold = asyncio.Event()
    namer.reply = text("Repair the login", hold=hold)
    session = await api.create()
    await api.ask(session, PROMPT)
    await provider.arrived(2)
    renamed = await api.call("PATCH", f"/api/session/{session}", {"title": "Mine"})
    assert renamed.status == 200
    hold.set()
    namer.reply = text("Repair the login")
    await api.ask(session, "more")
    assert (await api.session(session))["title"] == "Mine"
    assert (await api.facts(session)).count("renamed") == 1


@pytest.mark.parametrize(
    "reply",
    [
        refusal(500),
        refusal(401),
        cut("Repair"),
        text(""),
        Reply(pieces=(b"data: {nonsense\n\n",)),
    ],
    ids=["broken", "refused", "cut", "empty", "nonsense"],
)
async def test_a_model_that_fails_leaves_the_words_of_the_prompt(
    instance: Instance, provider: ScriptedProvider, namer: Namer, reply: Reply
) -> None:
    api = instance.api
    namer.reply = reply
    session = await api.create()
    await api.ask(session, PROMPT)
    await provider.arrived(2)
    *_, answer = await api.ask(session, "still there?")
    assert answer["content"][0]["text"] == "ok"
    assert (await api.session(session))["title"] in PROMPT
    assert len(namer.asked) == 1


async def test_a_namer_that_never_answers_holds_nothing_up(
    folders: ProjectFolders, provider: ScriptedProvider, namer: Namer
) -> None:
    namer.reply = text("never", hold=asyncio.Event())
    async with asyncio.timeout(PATIENCE_SECONDS):
        async with running(folders) as instance:
            api = instance.api
            session = await api.create()
            *_, answer = await api.ask(session, PROMPT)
            assert answer["finish"] == "stop"
            await provider.arrived(2)
            await api.ask(session, "more")
        async with running(folders) as instance:
            assert (await instance.api.session(session))["title"] in PROMPT


@pytest.fixture
async def quiet(tmp_path: Path, provider: ScriptedProvider) -> AsyncGenerator[Instance]:
    folders = make_folders(tmp_path / "quiet", provider, **configured(provider, disabled=True))
    async with running(folders) as opened:
        yield opened


async def test_without_the_title_agent_nobody_is_asked(
    quiet: Instance, provider: ScriptedProvider, namer: Namer
) -> None:
    session = await quiet.api.create()
    await quiet.api.ask(session, PROMPT)
    await quiet.api.ask(session, "more")
    assert namer.asked == []
    assert len(provider.requests) == 2
