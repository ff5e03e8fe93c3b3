"""Deleting a Session that another living process runs."""

import asyncio

from tests.acceptance.processes.test_two_processes import both
from tests.support.api import PATIENCE_SECONDS
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text


async def test_deleting_a_session_ends_its_run_in_another_process(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    held = asyncio.Event()
    provider.then(text("half", hold=held))
    async with both(folders) as (a, b), asyncio.timeout(PATIENCE_SECONDS):
        session = await a.api.create()
        async with a.api.stream("/api/event") as live:
            await a.api.prompt(session, "go on")
            await live.until("text.delta", sessionID=session)
        answer = await b.api.raw(b.api.message("DELETE", f"/api/session/{session}"))
        assert answer.status == 204
        for server in (a, b):
            gone = await server.api.raw(server.api.message("GET", f"/api/session/{session}"))
            assert gone.status == 404
            active = await server.api.get("/api/session/active")
            assert session not in active["data"]
        held.set()
