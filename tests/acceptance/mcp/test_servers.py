"""MCP servers through a whole server: their tools are offered, asked for, called and told."""

import json
import sys
from pathlib import Path
from typing import Any

from perdure.schema.codec import JsonObject
from tests.support.instance import running
from tests.support.mcp import scripted_server
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Call, ScriptedProvider, calls, text


def local(mode: str, journal: Path, **fields: object) -> JsonObject:
    command = [sys.executable, scripted_server.__file__, mode, str(journal)]
    return {"type": "local", "command": command, **fields}


def heard(journal: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in journal.read_text().splitlines()]


def offered(request: Any) -> list[str]:
    return [tool["function"]["name"] for tool in request.body["tools"]]


def mcp_folders(
    root: Path, provider: ScriptedProvider, mode: str = "sound", **fields: object
) -> ProjectFolders:
    journal = root / "project" / "journal"
    servers = {"mcp": {"servers": {"it": local(mode, journal, **fields)}}}
    folders = make_folders(root, provider, **servers)
    folders.configure_user(permission={"it_*": "allow"})
    return folders


async def test_tools_are_offered_called_and_told(
    tmp_path: Path, provider: ScriptedProvider
) -> None:
    folders = mcp_folders(tmp_path, provider)
    journal = folders.project / "journal"
    async with running(folders) as instance:
        assert not journal.exists()
        session = await instance.api.create()
        provider.then(calls(Call("it_say", {"text": "hello"}), Call("it_fail", {})), text("done"))
        await instance.api.ask(session, "say it")
    first, last = provider.requests[0], provider.requests[-1]
    assert [name for name in offered(first) if name.startswith("it_")] == [
        "it_fail",
        "it_picture",
        "it_say",
    ]
    results = [message["content"] for message in last.messages if message["role"] == "tool"]
    assert results == ["said hello", "It went wrong."]
