"""The web app that is inside the published program, in a real browser, against this server.

The program serves the page on one port. The page calls our server on another, as the desktop app
and `https://app.opencode.ai` do, so `--cors` is what lets it.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from perdure.cli.commands.serve import OPENCODE_ORIGINS
from tests.clients.equipment import Equipment
from tests.clients.terminal_ui import client_variables
from tests.clients.test_javascript import drive, free_port
from tests.support.instance import running
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text

WAIT_SECONDS_MAX = 60


@pytest.fixture
def settings() -> dict[str, object]:
    return {"permissions": [{"action": "bash", "resource": "*", "effect": "ask"}]}


@asynccontextmanager
async def page_server(equipment: Equipment, folders: ProjectFolders) -> AsyncGenerator[str]:
    """The published program, of which only the page is used; its address."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(
        *(str(equipment.opencode), "serve", "--hostname", "localhost", "--port", str(port)),
        env=dict(client_variables(folders)),
        cwd=folders.data.parent,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    assert process.stdout is not None
    try:
        async with asyncio.timeout(WAIT_SECONDS_MAX):
            while b"listening" not in (line := await process.stdout.readline()):
                assert line, "the program ended without a page"
        yield f"http://localhost:{port}"
    finally:
        process.kill()
        await process.communicate()


@pytest.mark.timeout(240)
async def test_the_web_app_chats_with_this_server(
    equipment: Equipment, folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    edit = Call("edit", {"path": "notes.txt", "oldString": "two", "newString": "2"})
    shell = Call("bash", {"command": "echo from the browser", "description": "Greets"})
    provider.then(calls(edit), text("All ", "done."), calls(shell), text("It ran."))
    libraries = {
        "LD_LIBRARY_PATH": str(equipment.browser_folder / "al2023" / "lib"),
        "FONTCONFIG_FILE": str(equipment.browser_folder / "fonts.conf"),
    }
    async with (
        page_server(equipment, folders) as page,
        running(folders, origins=OPENCODE_ORIGINS) as instance,
    ):
        server = f"http://127.0.0.1:{instance.api.port}"
        told = await drive(
            "web_app.mjs",
            *(str(equipment.folder), page, server, str(folders.project)),
            variables=folders.variables | libraries,
            directory=folders.project,
        )
    assert told == ["opened", "answered", "allowed", "reloaded"]
    assert (folders.project / "notes.txt").read_text() == "one\n2\nthree\n"
