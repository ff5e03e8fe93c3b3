"""A kill of the server in a command of the user or a compaction: each is ended, and told once."""

import asyncio

from perdure.core.session import recovery
from tests.support import database_check, polling
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text
from tests.support.server_process import server_process


async def test_a_killed_server_leaves_a_command_that_the_next_one_ends(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    command = "echo $$ > begun; echo once >> count; sleep 60"
    async with server_process(folders) as server:
        session = await server.api.create()
        asked = asyncio.create_task(
            server.api.post(f"/api/session/{session}/shell", {"command": command, "id": "msg_one"})
        )
        await polling.until((folders.project / "count").exists)
        await server.kill()
        await asyncio.gather(asked, return_exceptions=True)
    async with server_process(folders, "restarted") as server:
        api = server.api
        async with api.events(session) as stream:
            await stream.until("session.next.shell.ended")
        (told,) = await api.messages(session)
        assert told["output"] == recovery.SHELL_UNKNOWN
        body = {"command": command, "id": "msg_one"}
        assert await api.post(f"/api/session/{session}/shell", body) == {"data": told}
        provider.then(text("ok"))
        messages = await api.ask(session, "what happened?")
        assert messages[-1]["content"][-1]["text"] == "ok"
        assert recovery.SHELL_UNKNOWN in str(provider.requests[-1].body)
    assert (folders.project / "count").read_text() == "once\n"
    await database_check.check(folders.database)


async def test_a_killed_server_leaves_a_compaction_that_the_next_one_reports(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    hold = asyncio.Event()
    async with server_process(folders) as server:
        session = await server.api.create()
        await server.api.ask(session, "hello " + "lorem ipsum " * 6_000)
        await server.api.ask(session, "and again")
        provider.then(text("half a summary", hold=hold))
        asked = asyncio.create_task(server.api.post(f"/api/session/{session}/compact", {}))
        await provider.arrived(3)
        await server.kill()
        await asyncio.gather(asked, return_exceptions=True)
        hold.set()
    async with server_process(folders, "restarted") as server:
        async with server.api.events(session) as stream:
            await stream.until("session.next.compaction.reported")
        provider.then(text("ok"))
        messages = await server.api.ask(session, "still there?")
        assert messages[-1]["content"][-1]["text"] == "ok"
        facts = await server.api.facts(session)
        begun = facts.index("compaction.started")
        assert facts[begun + 1] == "compaction.reported"
        assert facts.count("compaction.reported") == 1
    await database_check.check(folders.database)
