"""Secrets of a server are in the environment of none of its children."""

import os
from pathlib import Path

from perdure.host.process import table
from tests.support import polling
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls
from tests.support.server_process import server_process

SECRET = "canary-of-the-server"
VARIABLES = ("OPENAI_API_KEY", "PERDURE_PASSWORD", "DEPLOY_TOKEN")


def descendants(process: int) -> dict[int, bytes]:
    """The environments of all processes that descend from one."""
    rows = table.list_rows()
    found: set[int] = {process}
    while grown := {row.pid for row in rows if row.parent in found} - found:
        found |= grown
    environments: dict[int, bytes] = {}
    for pid in found - {process}:
        try:
            environments[pid] = Path(f"/proc/{pid}/environ").read_bytes()
        except OSError:
            continue
    return environments


async def test_no_child_has_them(folders: ProjectFolders, provider: ScriptedProvider) -> None:
    folders.variables.update(dict.fromkeys(VARIABLES, SECRET))
    search = "while :; do sleep 0.05; done"
    provider.then(
        calls(
            Call("grep", {"pattern": "nothing"}),
            Call("bash", {"command": f"touch background; {search}", "background": True}),
            Call("bash", {"command": f"touch foreground; {search}"}),
        )
    )
    async with server_process(folders) as server:
        session = await server.api.create()
        await server.api.prompt(session, "run them")
        await polling.until((folders.project / "foreground").exists)
        await polling.until((folders.project / "background").exists)
        found = descendants(server.pid)
        # The watcher, the process that forks launchers, and two commands with their launchers.
        assert len(found) >= 6
        assert [pid for pid, given in found.items() if os.fsencode(SECRET) in given] == []
        for job in (await server.api.get(f"/api/session/{session}/job"))["data"]:
            await server.api.post(f"/api/session/{session}/job/{job['id']}/cancel")
        await server.api.post(f"/api/session/{session}/interrupt")
