"""Clients learn that a Location became trusted, or that its configuration asks for more."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from perdure.cli.commands import trust
from perdure.schema import codec
from perdure.schema.codec import JsonObject
from tests.support.api import Api, Stream
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, distrust, make_folders
from tests.support.scripted_provider import ScriptedProvider

EVENT = "location.trust.updated"


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    made = make_folders(tmp_path, provider)
    distrust(made)
    return made


def configure(folders: ProjectFolders, **settings: object) -> None:
    (folders.project / "opencode.json").write_bytes(codec.encode(settings))


async def get_trust(api: Api) -> JsonObject:
    return (await api.get("/api/location/trust"))["data"]


@asynccontextmanager
async def listening(folders: ProjectFolders) -> AsyncGenerator[tuple[Instance, Stream]]:
    """A client that listens and has read the trust of the project."""
    async with running(folders) as instance, instance.api.stream("/api/event") as live:
        await live.until("server.connected")
        yield instance, live


async def test_a_grant_by_another_program_is_told(folders: ProjectFolders) -> None:
    configure(folders, model="fake/fake-model")
    async with listening(folders) as (instance, live):
        before = await get_trust(instance.api)
        assert before["trusted"] is False
        await trust.decide(folders.environment, str(folders.project), trusts=True)
        (event,) = (await live.until(EVENT))[-1:]
        assert event["data"] == {"trusted": True, "off": []}
        assert event["location"]["directory"] == str(folders.project)
        assert await get_trust(instance.api) == event["data"]


async def test_what_a_changed_configuration_asks_for_is_told_in_words(
    folders: ProjectFolders,
) -> None:
    configure(folders)
    async with listening(folders) as (instance, live):
        assert (await get_trust(instance.api))["trusted"] is True
        configure(folders, model="fake/fake-model")
        (event,) = (await live.until(EVENT))[-1:]
        assert event["data"]["trusted"] is False
        assert [wish["kind"] for wish in event["data"]["off"]] == ["model"]
        assert event["data"] == await get_trust(instance.api)


async def test_a_client_that_looks_later_does_not_take_the_event_from_another(
    folders: ProjectFolders,
) -> None:
    configure(folders, model="fake/fake-model")
    async with listening(folders) as (instance, live):
        await get_trust(instance.api)
        await trust.decide(folders.environment, str(folders.project), trusts=True)
        assert (await get_trust(instance.api))["trusted"] is True
        (event,) = (await live.until(EVENT))[-1:]
        assert event["data"]["trusted"] is True
