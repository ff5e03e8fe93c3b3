"""A project with the scripted MCP server, and what a provider was told of its tools."""

import json
import sys
from pathlib import Path
from typing import Any

from perdure.schema.codec import JsonObject, JsonValue
from tests.support.mcp import scripted_server
from tests.support.project import ProjectFolders, make_folders
from tests.support.scripted_provider import Request, ScriptedProvider

ALLOWED: JsonObject = {"permission": {"it_*": "allow", "other_*": "allow"}}
"""The user allows what the servers `it` and `other` offer."""


def local(journal: Path, mode: str = "sound", **fields: JsonValue) -> JsonObject:
    """The entry of the scripted server in a configuration."""
    command = [sys.executable, scripted_server.__file__, mode, str(journal)]
    return {"type": "local", "command": command, **fields}


def with_server(root: Path, provider: ScriptedProvider, mode: str = "sound") -> ProjectFolders:
    """A project whose configuration names the server `it`, which the user allows."""
    entry = local(root / "project" / "journal", mode)
    folders = make_folders(root, provider, mcp={"servers": {"it": entry}})
    folders.configure_user(**ALLOWED)
    return folders


def heard(journal: Path) -> list[dict[str, Any]]:
    """What the scripted server has noted so far."""
    return [json.loads(line) for line in journal.read_text().splitlines()]


def offered(request: Request) -> list[str]:
    return [tool["function"]["name"] for tool in request.body["tools"]]


def offered_by(request: Request, server: str) -> list[str]:
    return [name for name in offered(request) if name.startswith(f"{server}_")]


def results(request: Request) -> list[str]:
    return [message["content"] for message in request.messages if message["role"] == "tool"]
