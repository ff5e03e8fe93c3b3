"""The published JavaScript SDK finds everything where it expects it, at one version of it."""

from pathlib import Path
from typing import Final

from tests.requirements import requirement
from tests.support.node import installed, node, run
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text
from tests.support.server_process import server_process

PACKAGE: Final = "@opencode-ai/sdk@1.18.33"
DRIVER: Final = Path(__file__).parent / "sdk" / "drive.mjs"


@requirement("S117", "S129", "S130")
async def test_the_published_sdk_works_against_this_server(
    folders: ProjectFolders, provider: ScriptedProvider
) -> None:
    folder = await installed(PACKAGE, "install", PACKAGE)
    provider.then(calls(Call("bash", {"command": "true"})), text("Some", "thing."))
    async with server_process(folders) as server:
        address = f"http://127.0.0.1:{server.api.port}"
        code, output = await run(
            *(node(), str(DRIVER), str(folder), address, str(folders.project)),
            environment=folders.variables,
        )
    assert "not ok" not in output, output
    assert output.count("ok ") >= 20
    assert code == 0
