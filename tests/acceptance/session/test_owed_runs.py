"""Only what is owed runs: a wake is stored, an interrupt takes it back, and nothing else starts."""

import asyncio

import pytest

from tests.requirements import requirement
from tests.support.api import Api
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text
from tests.support.server_process import server_process

NEVER = "only admitted"


async def waiting(api: Api, session: str) -> list[str]:
    found = (await api.get(f"/api/session/{session}/inbox"))["data"]
    return [prompt["prompt"]["text"] for prompt in found]


async def said(api: Api, session: str) -> list[str]:
    return [m["text"] for m in await api.messages(session) if m["type"] == "user"]


async def settle(api: Api) -> None:
    """Another Session runs from its prompt to its end: what was going to start has started."""
    await api.ask(await api.create(), "another")


@requirement("S66", "S71", "S76")
@pytest.mark.parametrize("delivery", ["steer", "queue"])
@pytest.mark.parametrize("kill", [False, True])
async def test_a_prompt_that_asked_for_no_run_waits_through_restarts_until_one_is_asked_for(
    folders: ProjectFolders, provider: ScriptedProvider, delivery: str, *, kill: bool
) -> None:
    async with server_process(folders, "first") as server:
        session = await server.api.create()
        await server.api.prompt(session, NEVER, delivery=delivery, resume=False)
        if kill:
            await server.kill()
    for name in ("second", "third"):
        async with server_process(folders, name) as server:
            await settle(server.api)
            assert await waiting(server.api, session) == [NEVER]
    assert provider.requests_with(NEVER) == 0
    async with running(folders) as last:
        await last.api.post(f"/api/session/{session}/resume")
        await last.api.wait(session)
        assert await said(last.api, session) == [NEVER]


@requirement("S66")
@pytest.mark.parametrize("change", ["text", "delivery", "order", "cancel another"])
async def test_an_edit_of_a_waiting_prompt_starts_nothing(
    api: Api, provider: ScriptedProvider, change: str
) -> None:
    session = await api.create()
    first = await api.prompt(session, NEVER, delivery="queue", resume=False)
    second = await api.prompt(session, "after it", delivery="queue", resume=False)
    path = f"/api/session/{session}/inbox"
    match change:
        case "text":
            await api.call("PATCH", f"{path}/{first['id']}", {"prompt": {"text": NEVER + "!"}})
        case "delivery":
            await api.call("PATCH", f"{path}/{first['id']}", {"delivery": "steer"})
        case "order":
            await api.post(f"{path}/order", {"messageIDs": [second["id"], first["id"]]})
        case _:
            await api.call("DELETE", f"{path}/{second['id']}")
    await settle(api)
    assert provider.requests_with(NEVER) == 0
    assert len(await waiting(api, session)) == (1 if change == "cancel another" else 2)
    # The same prompt again, this time with a run.
    await api.call("DELETE", f"{path}/{first['id']}")
    await api.ask(session, "now")
    assert (await said(api, session))[0] == "now"


@requirement("S70", "S76")
@pytest.mark.parametrize("kill", [False, True])
async def test_what_an_interrupt_stopped_stays_stopped_after_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider, *, kill: bool
) -> None:
    provider.then(text("long", hold=asyncio.Event()))
    async with server_process(folders, "first") as server:
        session = await server.api.create()
        await server.api.prompt(session, "work")
        await provider.arrived(1)
        await server.api.prompt(session, "queued", delivery="queue")
        await server.api.prompt(session, "steered")
        await server.api.post(f"/api/session/{session}/interrupt")
        await server.api.wait(session)
        if kill:
            await server.kill()
    async with server_process(folders, "second") as server:
        await settle(server.api)
        assert await waiting(server.api, session) == ["steered", "queued"]
        await server.api.ask(session, "go on")
        assert await said(server.api, session) == ["work", "steered", "go on", "queued"]


@requirement("S70")
async def test_what_is_admitted_after_an_interrupt_runs_after_a_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("long", hold=asyncio.Event()), text("held", hold=asyncio.Event()))
    async with server_process(folders, "first") as server:
        session = await server.api.create()
        await server.api.prompt(session, "work")
        await provider.arrived(1)
        await server.api.post(f"/api/session/{session}/interrupt")
        await server.api.prompt(session, "again")
        await provider.arrived(2)
        await server.api.prompt(session, "queued", delivery="queue")
        await server.kill()
    async with server_process(folders, "second") as server:
        await server.api.wait(session)
        assert await said(server.api, session) == ["work", "again", "queued"]


async def test_a_prompt_sent_again_to_be_run_is_run(api: Api, provider: ScriptedProvider) -> None:
    session = await api.create()
    await api.prompt(session, NEVER, id="msg_mine", resume=False)
    await api.prompt(session, NEVER, id="msg_mine")
    await api.wait(session)
    assert await said(api, session) == [NEVER]
    assert provider.requests_with(NEVER) == 1
