"""A Session with a Chat Completions provider that takes less, or other things, than OpenAI."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.schema.codec import JsonObject
from tests.acceptance.dialects import configured
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import make_folders
from tests.support.scripted_provider import Call, Reply, ScriptedProvider, calls, text

COMPATIBLE = "@ai-sdk/openai-compatible"


@asynccontextmanager
async def speaking(
    root: Path, server: ScriptedProvider, name: str, **entry: JsonObject
) -> AsyncGenerator[tuple[Api, str]]:
    """A server whose provider has that name, and a Session with its model."""
    provider = configured(COMPATIBLE, server, "m")
    entry["request"] = {"body": provider["request"]["body"] | entry.get("request", {})}
    folders = make_folders(root, server, providers={name: provider | entry}, model=f"{name}/m")
    async with running(folders) as instance:
        api = instance.api
        yield api, await api.create(model={"id": "m", "providerID": name})


async def fields_sent(
    root: Path, server: ScriptedProvider, name: str, **entry: JsonObject
) -> JsonObject:
    async with speaking(root, server, name, **entry) as (api, session):
        await api.ask(session, "hi")
        body = server.requests[0].body
        return {key: body[key] for key in body if key not in ("messages", "tools")} | {
            "session": session
        }


async def test_an_unknown_provider_is_not_sent_a_cache_key(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    sent = await fields_sent(tmp_path, provider, "acme")
    assert sent.keys() - {"session"} == {"model", "stream", "stream_options"}


async def test_a_provider_that_knows_the_cache_key_is_sent_it(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    sent = await fields_sent(tmp_path, provider, "moonshotai")
    assert sent["prompt_cache_key"] == sent["session"]


async def test_a_configuration_switches_a_field_on_and_another_off(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    fields = {"prompt_cache_key": True, "stream_options": False}
    sent = await fields_sent(tmp_path, provider, "acme", dialect={"fields": fields})
    assert sent["prompt_cache_key"] == sent["session"]
    assert "stream_options" not in sent


@pytest.mark.parametrize("name", ["stream_options", "streamOptions"])
async def test_null_in_a_request_removes_a_field(
    name: str, tmp_path: Path, provider: ScriptedProvider
) -> None:
    sent = await fields_sent(tmp_path, provider, "acme", request={name: None, "topP": 0.5})
    assert sent.keys() - {"session"} == {"model", "stream", "top_p"}


async def test_null_cannot_remove_what_makes_a_request(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    async with speaking(tmp_path, provider, "acme", request={"stream": None}) as (api, session):
        _, failed = await api.ask(session, "hi")
    assert "may not set stream" in failed["error"]["message"]
    assert provider.requests == []


@pytest.mark.parametrize(
    ("name", "fields"),
    [
        ("deepseek", {"reasoning_content": "hm"}),
        ("cerebras", {"reasoning": "hm"}),
        ("groq", {"content": "<think>\nhm\n</think>\nLook."}),
        ("openai", {"content": "Look."}),
        ("acme", {"reasoning_content": "hm"}),
    ],
)
async def test_reasoning_goes_back_as_the_provider_wants_it(
    name: str, fields: JsonObject, tmp_path: Path, provider: ScriptedProvider
) -> None:
    thinks = text("Look.", reasoning=["hm"]).pieces[:2]
    asks = calls(Call("bash", {"command": "echo seen"}))
    provider.then(Reply(pieces=(*thinks, *asks.pieces)))
    async with speaking(tmp_path, provider, name) as (api, session):
        await api.ask(session, "go")
    (request,) = (each for each in provider.requests if "tool" in each.roles)
    answer = request.messages[2]
    assert answer | fields == answer
    known = {"reasoning", "reasoning_content", "reasoning_details"}
    assert answer.keys() & known == fields.keys() & known
