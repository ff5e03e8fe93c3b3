"""The reference page of configuration keys: their fields, and when those of a project count."""

from collections.abc import Iterator, Mapping
from typing import Final

import msgspec

from perdure.core.config_file import entries
from perdure.core.config_file.mcp_entries import McpServerEntry
from perdure.core.settings.project_keys import KEYS, Counts, Key
from perdure.schema.approval.permission import Rule
from scripts.docs_site import records
from scripts.docs_site.records import code, table_row

_INTRODUCTION = """# Configuration keys

Every key that is read from `opencode.json`, `opencode.jsonc` and the files beside them. What they
do, with examples, is in [configuration, in words](docs/configuration.md). The column "of a project"
says when a key counts that a project's own file sets; those of the user always count.
"""
_COUNTS: Final[Mapping[Counts, str]] = {
    "always": "always",
    "narrows": "always; it can only take away",
    "files": "paths always, addresses after trust",
    "trusted": "after `perdure trust`",
    "never": "never",
}
_SHAPES: Final[Mapping[str, tuple[str, type[msgspec.Struct]]]] = {
    "agents": ("agents.NAME", entries.AgentEntry),
    "attachments": ("attachments", entries.AttachmentsEntry),
    "commands": ("commands.NAME", entries.CommandEntry),
    "compaction": ("compaction", entries.CompactionEntry),
    "experimental.bash": ("experimental.bash", entries.BashEntry),
    "experimental.budget": ("experimental.budget", entries.BudgetEntry),
    "experimental.diagnostics": ("experimental.diagnostics.NAME", entries.ProgramEntry),
    "experimental.logins": ("experimental.logins.PROVIDER.NAME", entries.LoginEntry),
    "experimental.policies": ("experimental.policies[]", entries.Policy),
    "experimental.webfetch": ("experimental.webfetch", entries.WebFetchEntry),
    "experimental.websearch": ("experimental.websearch", entries.WebSearchEntry),
    "formatter": ("formatter.NAME", entries.ProgramEntry),
    "lsp": ("lsp.NAME", entries.ProgramEntry),
    "mcp": ("mcp.servers.NAME", McpServerEntry),
    "permissions": ("permissions[]", Rule),
    "providers": ("providers.ID", entries.ProviderEntry),
    "providers.models": ("providers.ID.models.ID", entries.ModelEntry),
    "sandbox": ("sandbox", entries.SandboxEntry),
    "tool_output": ("tool_output", entries.OutputEntry),
}


def write() -> str:
    return "\n".join([_INTRODUCTION, *_keys(), *_shapes()])


def _keys() -> Iterator[str]:
    yield table_row("key", "of a project", "")
    yield "|---|---|---|"
    for key in KEYS:
        others = "" if key.field is not None else "read by other programs only"
        yield table_row(code(_address(key)), _COUNTS[key.counts], others)
    yield ""


def _shapes() -> Iterator[str]:
    for title, shape in _SHAPES.values():
        yield f"## `{title}`\n"
        if text := records.docstring(shape):
            yield f"{text}\n"
        yield table_row("field", "type", "")
        yield "|---|---|---|"
        for field in records.list_fields(shape):
            needed = "required. " if field.required else ""
            yield table_row(code(field.name), code(field.type), (needed + field.doc).strip())
        yield ""


def _address(key: Key) -> str:
    return ".".join(map(str, key.at))
