"""JavaScript clients of V1: `createOpencode()` of the published SDK, and the AI SDK's provider."""

import os
import socket
import sys
from pathlib import Path
from typing import Final

from tests.clients.equipment import Equipment
from tests.support import node
from tests.support.instance import Instance
from tests.support.project import ProjectFolders
from tests.support.scripted_provider import ScriptedProvider, text

SCRIPTS: Final = Path(__file__).parent / "javascript"


async def drive(
    script: str, *arguments: str, variables: dict[str, str], directory: Path
) -> list[str]:
    """Run a script; the lines that tell its steps, without the `ok`."""
    code, output = await node.run(
        *(node.node(), str(SCRIPTS / script), *arguments),
        environment=variables,
        directory=directory,
    )
    assert code == 0, output
    return [line.removeprefix("ok ") for line in output.splitlines() if line.startswith("ok ")]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        return taken.getsockname()[1]


async def test_create_opencode_starts_this_server_by_the_name_opencode(
    equipment: Equipment, folders: ProjectFolders, provider: ScriptedProvider, tmp_path: Path
) -> None:
    commands = tmp_path / "commands"
    commands.mkdir()
    (commands / "opencode").symlink_to(Path(sys.executable).parent / "perdure")
    variables = folders.variables | {"PATH": f"{commands}{os.pathsep}{folders.variables['PATH']}"}
    provider.then(text("Hello ", "there."))
    port = free_port()
    told = await drive(
        "create_opencode.mjs",
        *(str(equipment.folder), str(port)),
        variables=variables,
        directory=folders.project,
    )
    assert told == [
        f"started http://127.0.0.1:{port}",
        "config fake/other-model",
        "session Of the SDK",
        "streamed Hello there.",
        "answer Hello there.",
    ]


async def test_the_provider_of_the_ai_sdk_generates_and_streams(
    equipment: Equipment, instance: Instance, provider: ScriptedProvider, folders: ProjectFolders
) -> None:
    provider.then(text("Some ", "text."), text("More ", "text."))
    told = await drive(
        "ai_sdk.mjs",
        *(str(equipment.folder), f"http://127.0.0.1:{instance.api.port}"),
        variables=folders.variables,
        directory=folders.project,
    )
    assert told == ["generated Some text.", "usage 120 25", "streamed More text.", "finished stop"]
    assert [request.body["model"] for request in provider.requests] == ["other-model"] * 2
