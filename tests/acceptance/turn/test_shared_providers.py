"""Providers that several Sessions and servers share: limits that hold for all, and substitutes."""

import asyncio
from pathlib import Path

from perdure.schema.codec import JsonObject
from tests.support.api import PATIENCE_SECONDS, Stream
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import ScriptedProvider, refusal, text
from tests.support.server_process import server_process


def configured(provider: ScriptedProvider, models: list[str], **fields: object) -> JsonObject:
    api = {"type": "aisdk", "package": "@ai-sdk/openai-compatible", "url": provider.url}
    listed: JsonObject = {name: {} for name in models}
    return {"fake": {"api": api, "models": listed, **fields}}


async def until_waiting(live: Stream, session: str) -> str:
    """What the Session says that it waits for."""
    while True:
        *_, told = await live.until("session.status", sessionID=session)
        if told["data"]["status"]["type"] == "retry":
            return told["data"]["status"]["message"]


async def test_two_servers_keep_to_one_limit_and_a_killed_one_frees_its_slot(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    wanted = configured(provider, ["fake-model"], limits={"concurrent": 1})
    folders = make_folders(tmp_path, provider, providers=wanted)
    provider.then(text("one", hold=asyncio.Event()), text("two"))
    async with (
        asyncio.timeout(2 * PATIENCE_SECONDS),
        server_process(folders) as first,
        server_process(folders, "second") as second,
    ):
        await first.api.prompt(await first.api.create(), "go")
        await provider.arrived(1)
        other = await second.api.create()
        async with second.api.stream("/api/event") as live:
            await second.api.prompt(other, "go too")
            assert "limits of fake" in await until_waiting(live, other)
        assert len(provider.requests) == 1
        await first.kill()
        await provider.arrived(2)
        await second.api.wait(other)
        assert (await second.api.messages(other))[-1]["content"][0]["text"] == "two"


async def test_a_limit_that_is_renewed_in_an_hour_lets_the_next_model_answer(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = make_folders(
        tmp_path,
        provider,
        providers=configured(provider, ["a", "b", "c"]),
        agents={"build": {"models": ["fake/a", "fake/b", "fake/c"]}},
        model="fake/a",
        default_agent="build",
    )
    used_up = refusal(429, x_ratelimit_remaining_requests="0", x_ratelimit_reset_requests="1h0m0s")
    provider.then(used_up, refusal(402), text("here"))
    async with asyncio.timeout(2 * PATIENCE_SECONDS), running(folders) as instance:
        session = await instance.api.create()
        *_, answer = await instance.api.ask(session, "go")
        assert answer["content"][0]["text"] == "here"
        assert answer["model"]["id"] == "c"
        facts = await instance.api.history(session)
        switched = [fact for fact in facts if fact["type"].endswith("model.substituted")]
        assert [fact["data"]["substitute"]["model"]["id"] for fact in switched] == ["b", "c"]
        assert (await instance.api.session(session))["substitute"]["model"]["id"] == "c"
