"""A server that was killed with three Sessions in it, and what the next one finds and does.

One runs a tool, one is being answered, and one has a prompt that no run has begun with.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from perdure.schema.codec import JsonObject
from tests.contract.recorded.stage import EVERYTHING, MODEL, RELEASED, WAITING
from tests.contract.recorded.streams import Told
from tests.support.api import Api
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import ScriptedProvider, calls, text
from tests.support.server_process import server_process

_NEXT: Final[Mapping[str, str]] = {"tool": "continue", "text": "continue too", "pending": "kick"}


async def looks(root: Path, provider: ScriptedProvider) -> dict[str, JsonObject]:
    """By case of the recording, what the server that was started again told."""
    folders = make_folders(root, provider, permissions=EVERYTHING)
    sessions = await _killed(folders, provider)
    (folders.project / RELEASED).touch()
    async with server_process(folders, "restarted") as server:
        found = await _looks(server.api, sessions, "after restart")
        for case, said in _NEXT.items():
            await server.api.prompt(sessions[case], said)
        found |= await _looks(server.api, sessions, "after next prompt")
    return found


async def _killed(folders: ProjectFolders, provider: ScriptedProvider) -> dict[str, str]:
    async with server_process(folders) as server, server.api.stream("/api/event") as stream:
        told, api = Told(stream), server.api
        sessions = {case: await api.create(model=MODEL) for case in _NEXT}
        provider.then(calls(WAITING))
        await api.prompt(sessions["tool"], "use a tool")
        await told.until("next.tool.called")
        provider.then(text("half", hold=asyncio.Event()))
        await api.prompt(sessions["text"], "be slow")
        await told.until("next.text.delta")
        await api.prompt(sessions["pending"], "wait", resume=False)
        await server.kill()
    return sessions


async def _looks(api: Api, sessions: Mapping[str, str], when: str) -> dict[str, JsonObject]:
    """Once all have come to rest."""
    for session in sessions.values():
        await api.wait(session)
    return {f"{case} {when}": await _look(api, session) for case, session in sessions.items()}


async def _look(api: Api, session: str) -> JsonObject:
    return {
        "history": await api.history(session),
        "messages": await api.get(f"/api/session/{session}/message?order=asc"),
        "active": await api.get("/api/session/active"),
    }
