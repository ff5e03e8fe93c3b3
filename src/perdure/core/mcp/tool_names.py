"""Names of the tools of MCP servers, as OpenCode makes them, so that permission rules hold.

The name is that of the server and that of the tool, joined by `_`, with every character that a
provider does not take replaced by `_`. A permission rule is about this name. What the model is
offered has at most 64 characters and begins with a letter: a longer name is cut and ends with a
digest, another beginning gets `mcp_` in front.

Invariant: a name means one tool. Tools whose names collide are refused, all of them, so that none
passes for another.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Final

from perdure.lazy_pattern import lazy_pattern
from perdure.schema.value import Value

SEARCH: Final = "mcp_search"
CALL: Final = "mcp_call"
READ_RESOURCE: Final = "mcp_read_resource"
OWN: Final = frozenset({SEARCH, CALL, READ_RESOURCE})
"""Names of tools of this program that are about MCP servers."""

_REFUSED: Final = lazy_pattern(r"[^a-zA-Z0-9_-]")
_CHARS_MAX: Final = 64
_DIGEST_CHARS: Final = 8


class McpToolName(Value):
    server: str
    tool: str
    """As the server calls it."""

    @property
    def action(self) -> str:
        """The name for permission rules, of any length."""
        return f"{sanitize(self.server)}_{sanitize(self.tool)}"

    @property
    def offered(self) -> str:
        """The name that the model is offered."""
        name = self.action
        if not name[:1].isalpha():
            name = f"mcp_{name}"
        if len(name) <= _CHARS_MAX:
            return name
        digest = hashlib.sha256(f"{self.server}\0{self.tool}".encode(errors="replace")).hexdigest()
        return f"{name[: _CHARS_MAX - _DIGEST_CHARS - 1]}_{digest[:_DIGEST_CHARS]}"


class NamedTools(Value):
    """Tools by the names that the model is offered, and those that share one."""

    tools: Mapping[str, McpToolName]
    refused: tuple[McpToolName, ...]


def sanitize(text: str) -> str:
    return _REFUSED.sub("_", text)


def rule_pattern(server: str) -> str:
    """The pattern of permission rules that matches every tool of a server."""
    return f"{sanitize(server)}_*"


def name_tools(found: Iterable[McpToolName], *, taken: frozenset[str]) -> NamedTools:
    """Name the tools of all servers; `taken` are the names of other tools."""
    tools = tuple(found)
    # Two tools may also share the name for rules alone, if one of them is cut.
    uses = Counter(tool.action for tool in tools)
    offered = Counter(tool.offered for tool in tools)
    unique: dict[str, McpToolName] = {}
    refused: list[McpToolName] = []
    for tool in tools:
        name = tool.offered
        if uses[tool.action] > 1 or offered[name] > 1 or name in taken or name in OWN:
            refused.append(tool)
        else:
            unique[name] = tool
    return NamedTools(dict(sorted(unique.items())), tuple(refused))
