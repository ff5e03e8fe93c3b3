"""Published MCP servers, installed by the files of the project: npm packages once, below `.cache`.

Without a registry to get them from there is nothing to run (tests.skipping). Those of PyPI are
development packages (requirements-dev.lock).
"""

import sys
from pathlib import Path
from typing import Final

from perdure.schema.codec import JsonObject
from tests.skipping import cannot_run
from tests.support import node

_NPM: Final = {
    "server-everything": "@modelcontextprotocol/server-everything@2026.8.31",
    "server-filesystem": "@modelcontextprotocol/server-filesystem@2026.8.31",
}


async def npm_server(name: str, *arguments: str) -> JsonObject:
    """The entry of a server from npm in a configuration."""
    return {"type": "local", "command": [*await npm_command(name), *arguments]}


async def npm_command(name: str) -> list[str]:
    folder = await node.installed(f"mcp-{name}", "install", _NPM[name])
    script = folder / "node_modules" / "@modelcontextprotocol" / name / "dist" / "index.js"
    if not script.exists():
        cannot_run(f"{_NPM[name]} has no {script.name}")
    return [node.node(), str(script)]


def python_server(name: str, *arguments: str) -> JsonObject:
    """The entry of a server from PyPI in a configuration."""
    program = Path(sys.executable).parent / name
    if not program.exists():
        cannot_run(f"{name} is not installed: make setup")
    return {"type": "local", "command": [str(program), *arguments]}
