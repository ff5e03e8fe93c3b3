"""Notices of the runtime: told once, at a boundary, also when processes die in between."""

import asyncio

from perdure.ports import Transaction
from perdure.schema.ids import MessageID, SessionID
from perdure.store.tables import attempt_table, notice_table
from perdure.store.tables.notice_table import Notice
from tests.fixtures import opened
from tests.requirements import requirement
from tests.support.api import PATIENCE_SECONDS, Api
from tests.support.instance import Instance, running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process

DONE = MessageID("msg_done")


async def tell(instance: Instance, session: str, words: str = "the job ended") -> None:
    runtime = instance.runtime
    notice = Notice(
        id=DONE,
        session_id=SessionID(session),
        text=words,
        time_created=runtime.clock.now_millis(),
    )
    if await runtime.store.database.write(lambda tx: runtime.notices.put(tx, notice)):
        runtime.notices.wake(notice.session_id)


async def left(tx: Transaction, notice: Notice) -> None:
    """A notice as a process leaves it that dies before it wakes the Session."""
    assert await notice_table.put(tx, notice)
    await attempt_table.owe(tx, notice.session_id)


async def told(api: Api, session: str) -> list[str]:
    return [m["text"] for m in await api.messages(session) if m["type"] == "synthetic"]


@requirement("S68", "S69")
async def test_an_idle_session_is_run_once_to_be_told(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    session = await api.create()
    await api.ask(session, "start")
    await tell(instance, session)
    await tell(instance, session)
    await api.wait(session)
    assert len(provider.requests) == 2
    assert provider.requests[1].texts("user") == ["start", "the job ended"]
    await tell(instance, session, "the very same once more")
    await api.wait(session)
    assert await told(api, session) == ["the job ended"]
    assert len(provider.requests) == 2


@requirement("S68")
async def test_a_session_that_works_is_told_at_its_next_boundary(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api, hold = instance.api, asyncio.Event()
    provider.then(calls(Call("bash", {"command": "true"}), hold=hold), text("I see"))
    session = await api.create()
    await api.prompt(session, "start")
    await provider.arrived(1)
    await api.prompt(session, "and hurry")
    await tell(instance, session)
    hold.set()
    await api.wait(session)
    assert len(provider.requests) == 2
    assert provider.requests[1].roles[-2:] == ["user", "user"]
    assert provider.requests[1].texts("user")[-2:] == ["and hurry", "the job ended"]


async def test_a_notice_during_the_last_answer_gets_one_of_its_own(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api, hold = instance.api, asyncio.Event()
    provider.then(text("done", hold=hold), text("good to know"))
    session = await api.create()
    await api.prompt(session, "start")
    await provider.arrived(1)
    await tell(instance, session)
    hold.set()
    await api.wait(session)
    facts = await api.facts(session)
    shown = [fact for fact in facts if fact in {"prompted", "synthetic", "step.started"}]
    assert shown == ["prompted", "step.started", "synthetic", "step.started"]


async def test_a_staged_revert_holds_a_notice_back(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    session = await api.create()
    messages = await api.ask(session, "start")
    await api.post(f"/api/session/{session}/revert/stage", {"messageID": messages[0]["id"]})
    await tell(instance, session)
    await api.wait(session)
    assert await told(api, session) == []
    await api.post(f"/api/session/{session}/revert/clear")
    await api.wait(session)
    assert await told(api, session) == ["the job ended"]
    assert len(provider.requests) == 2


async def test_a_session_that_was_put_away_is_told_when_it_goes_on(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    session, gone = await api.create(), await api.create()
    await api.ask(session, "start")
    await api.post(f"/api/session/{session}/archive")
    await api.call("DELETE", f"/api/session/{gone}")
    await tell(instance, session)
    await tell(instance, gone)
    await api.wait(session)
    assert await told(api, session) == []
    assert len(provider.requests) == 1
    await api.ask(session, "go on")
    assert await told(api, session) == ["the job ended"]
    assert len(provider.requests) == 2


async def test_the_provider_context_shows_what_will_be_told(
    instance: Instance, provider: ScriptedProvider
) -> None:
    api = instance.api
    session = await api.create()
    messages = await api.ask(session, "start")
    await api.post(f"/api/session/{session}/revert/stage", {"messageID": messages[0]["id"]})
    await tell(instance, session)
    await api.wait(session)
    shown = await api.get(f"/api/session/{session}/provider-context")
    assert shown["data"]["request"]["messages"][-1]["content"][0]["text"] == "the job ended"


@requirement("S70", "S76")
async def test_a_kill_before_the_boundary_tells_once_after_the_restart(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    async with running(folders) as server:
        session = await server.api.create()
        await server.api.ask(session, "start")
    notice = Notice(id=DONE, session_id=SessionID(session), text="job ended", time_created=1)
    async with opened(folders.database) as database:
        await database.write(lambda tx: left(tx, notice))
    for name in ("second", "third"):
        async with server_process(folders, name) as server, asyncio.timeout(PATIENCE_SECONDS):
            async with server.api.events(session) as stream:
                await stream.until("synthetic")
            await provider.arrived(2)
            await server.api.wait(session)
            assert await told(server.api, session) == ["job ended"]
            await server.kill()
    assert provider.requests_with("job ended") == 1


@requirement("S76")
async def test_a_kill_right_after_it_was_told_does_not_tell_it_again(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    provider.then(text("first"), text("never", hold=asyncio.Event()))
    async with running(folders) as server:
        session = await server.api.create()
        await server.api.ask(session, "start")
    notice = Notice(id=DONE, session_id=SessionID(session), text="job ended", time_created=1)
    async with opened(folders.database) as database:
        await database.write(lambda tx: left(tx, notice))
    async with server_process(folders, "second") as server:
        await provider.arrived(2)
        await server.kill()
    async with running(folders) as server:
        await server.api.ask(session, "go on")
        assert await told(server.api, session) == ["job ended"]
    assert provider.requests[-1].texts("user") == ["start", "job ended", "go on"]
