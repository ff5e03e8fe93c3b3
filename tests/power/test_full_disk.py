"""A full disk stops writes and nothing else, and no restart is needed afterwards.

`PERDURE_FILLS` fills it more often under one server.
"""

import asyncio
import os
from collections.abc import AsyncGenerator, Generator
from contextlib import closing
from pathlib import Path
from typing import Final

import pytest

from perdure.schema.codec import JsonObject
from perdure.store.database import sqlite_connection
from tests.figures import Figure
from tests.power import full_disk
from tests.power.full_disk import Disk, NotPermittedError
from tests.skipping import cannot_run
from tests.support import database_check
from tests.support.api import PATIENCE_SECONDS, Answer, Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import (
    Call,
    ScriptedProvider,
    calls,
    scripted_provider,
    text,
)

LONG: Final = "too long for what is left " * 4_000
"""A write needs new pages, so that it cannot fit in the rest of an old one."""
FILLS: Final = int(os.environ.get("PERDURE_FILLS", "3"))


@pytest.fixture
async def provider() -> AsyncGenerator[ScriptedProvider]:
    async with scripted_provider() as opened:
        yield opened


@pytest.fixture
def folders(tmp_path: Path, provider: ScriptedProvider) -> ProjectFolders:
    return make_folders(tmp_path, provider)


@pytest.fixture(params=["a real file system", "an answer like one"])
def disk(request: pytest.FixtureRequest, folders: ProjectFolders) -> Generator[Disk]:
    if request.param == "an answer like one":
        with full_disk.answering_like_one(folders.data) as made:
            yield made
        return
    try:
        with full_disk.small_filesystem(folders.data) as made:
            yield made
    except NotPermittedError as error:
        cannot_run(f"a file system cannot be mounted here: {error}")


@pytest.fixture
async def instance(folders: ProjectFolders, disk: Disk) -> AsyncGenerator[Instance]:
    async with running(folders) as opened:
        yield opened


@pytest.fixture
def api(instance: Instance) -> Api:
    return instance.api


async def prompt(api: Api, session: str, words: str, id: str) -> Answer:
    body = {"prompt": {"text": words}, "id": id, "resume": False}
    return await api.call("POST", f"/api/session/{session}/prompt", body)


async def test_a_prompt_that_does_not_fit_is_refused_and_everything_can_still_be_read(
    api: Api, disk: Disk, folders: ProjectFolders
) -> None:
    session = await api.create()
    await api.ask(session, "before")
    before = await api.history(session)
    disk.fill()
    for _ in range(3):
        refused = await prompt(api, session, LONG, "msg_1")
        assert refused.status == 507
        assert refused.json.keys() == {"_tag", "message"}
        assert refused.tag == "StorageError"
        assert str(folders.database) in refused.json["message"]
        assert "try again" in refused.json["message"]
    assert [found["id"] for found in (await api.get("/api/session"))["data"]] == [session]
    assert await api.history(session) == before
    assert len(await api.messages(session)) == 2
    disk.free()


async def test_when_there_is_room_again_the_same_prompt_is_admitted_once(
    api: Api, disk: Disk, folders: ProjectFolders
) -> None:
    session = await api.create()
    disk.fill()
    assert (await prompt(api, session, LONG, "msg_1")).status == 507
    assert (await api.call("POST", "/api/session", {"agent": LONG})).status == 507
    disk.free()
    first, again = [await prompt(api, session, LONG, "msg_1") for _ in range(2)]
    assert first.status == 200
    assert first.body == again.body
    assert await api.facts(session) == ["prompt.admitted"]
    *_, answer = await api.ask(session, "now")
    assert answer["content"][0]["text"] == "ok"


@pytest.mark.timeout(60 + FILLS)
async def test_a_disk_may_fill_again_and_again_under_the_same_server(
    api: Api, disk: Disk, figure: Figure
) -> None:
    session = await api.create()
    for number in range(1, FILLS + 1):
        disk.fill()
        assert (await prompt(api, session, LONG, f"msg_{number}")).status == 507
        assert len(await api.history(session)) == number - 1
        disk.free()
        assert (await prompt(api, session, "short", f"msg_{number}")).status == 200
    assert await api.facts(session) == ["prompt.admitted"] * FILLS
    figure("times a disk was full", FILLS)


async def test_many_who_write_at_once_are_all_refused_and_all_served_afterwards(
    api: Api, disk: Disk
) -> None:
    session = await api.create()
    ids = [f"msg_{number}" for number in range(12)]
    disk.fill()
    refused = await asyncio.gather(*(prompt(api, session, LONG, each) for each in ids))
    assert {answer.status for answer in refused} == {507}
    disk.free()
    served = await asyncio.gather(*(prompt(api, session, "short", each) for each in ids))
    assert {answer.status for answer in served} == {200}
    assert await api.facts(session) == ["prompt.admitted"] * len(ids)


async def test_a_turn_that_cannot_be_recorded_ends_for_all_to_see(
    api: Api, disk: Disk, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    go_on = asyncio.Event()
    provider.then(text(LONG, hold=go_on), text("a new answer"))
    session = await api.create()
    async with api.events(session) as events:
        await api.prompt(session, "go")
        await events.until("text.started")
        disk.fill()
        go_on.set()
        await api.wait(session)
    assert (await api.get("/api/session/active"))["data"] == {}
    disk.free()
    *_, answer = await api.ask(session, "and now?")
    assert answer["content"][0]["text"] == "a new answer"
    assert (await steps(api, session))[0]["finish"] == "error"
    assert provider.requests[-1].texts("user") == ["go", "and now?"]
    assert len(provider.requests) == 2


async def test_a_tool_whose_outcome_cannot_be_recorded_is_not_run_again(
    api: Api, disk: Disk, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    gate = folders.project / "gate"
    os.mkfifo(gate)
    command = f"cat gate; echo ran >> effects; printf '{'x' * 30_000}'"
    provider.then(calls(Call("bash", {"command": command})), text("seen"))
    session = await api.create()
    async with api.events(session) as events:
        await api.prompt(session, "go")
        await events.until("tool.called")
        disk.fill()
        await open_gate(gate)
        await api.wait(session)
    disk.free()
    *_, answer = await api.ask(session, "and now?")
    assert answer["content"][0]["text"] == "seen"
    assert (folders.project / "effects").read_text() == "ran\n"
    (tool,) = [part for part in (await steps(api, session))[0]["content"] if part["type"] == "tool"]
    assert tool["state"]["status"] == "error"
    assert provider.requests[-1].roles.count("tool") == 1


async def test_what_was_refused_is_not_in_the_database_and_what_was_admitted_is(
    folders: ProjectFolders, disk: Disk
) -> None:
    async with running(folders) as instance:
        session = await instance.api.create()
        assert (await prompt(instance.api, session, "kept", "msg_1")).status == 200
        disk.fill()
        assert (await prompt(instance.api, session, LONG, "msg_2")).status == 507
        disk.free()
    await database_check.check(folders.database)
    with closing(sqlite_connection.open_connection(str(folders.database))) as connection:
        found = connection.execute("SELECT id FROM session_input").fetchall()
    assert found == [("msg_1",)]


async def steps(api: Api, session: str) -> list[JsonObject]:
    return [found for found in await api.messages(session) if found["type"] == "assistant"]


async def open_gate(gate: Path) -> None:
    async with asyncio.timeout(PATIENCE_SECONDS):
        handle = await asyncio.to_thread(os.open, gate, os.O_WRONLY)
    os.close(handle)
