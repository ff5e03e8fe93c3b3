"""After-edit programs: formatters, checkers and language servers.

They run after a tool has changed a file. A formatter may change the file again; a checker and a
language server only report. The trusted configuration documents name them. Nothing is started here.
"""

import posixpath
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import UNSET, field

from perdure.core.config_file.entries import ProgramEntry, merge_entries
from perdure.core.settings.document import Document
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Confidential

FILE: Final = "$FILE"
"""Stands for the path of the file in a command."""


class EditProgram(Confidential, kw_only=True):
    name: str
    command: tuple[str, ...]
    extensions: tuple[str, ...]
    """Each with its dot; empty means every file."""
    environment: Mapping[str, str] = field(default_factory=dict[str, str])
    initialization: JsonObject = field(default_factory=dict[str, JsonValue])
    """Initialization options of a language server."""
    contained: bool = False
    """Whether `command` starts it in a sandbox, where other processes have no numbers."""

    def is_for(self, path: str) -> bool:
        name = posixpath.basename(path)
        return not self.extensions or name.endswith(self.extensions)

    def arguments(self, path: str) -> tuple[str, ...]:
        return tuple(word.replace(FILE, path) for word in self.command)


class EditPrograms(Confidential, kw_only=True):
    formatters: tuple[EditProgram, ...] = ()
    checkers: tuple[EditProgram, ...] = ()
    servers: tuple[EditProgram, ...] = ()


def configured_programs(documents: Iterable[Document]) -> EditPrograms:
    """The programs of the trusted documents; later documents override earlier ones."""
    trusted = [document for document in documents if document.is_trusted]
    servers = _programs(document.lsp for document in trusted)
    return EditPrograms(
        formatters=_programs(document.formatter for document in trusted),
        checkers=_programs(document.diagnostics for document in trusted),
        # Without extensions, the first edit of any file would start the server.
        servers=tuple(server for server in servers if server.extensions),
    )


def _programs(
    layers: Iterable[bool | Mapping[str, ProgramEntry] | None],
) -> tuple[EditProgram, ...]:
    entries: dict[str, ProgramEntry] = {}
    off = False
    for layer in layers:
        if isinstance(layer, bool):
            off = not layer
        elif layer is not None:
            off = False
            for name, entry in layer.items():
                entries[name] = merge_entries(entries.get(name, ProgramEntry()), entry)
    found = (_program(name, entry) for name, entry in entries.items())
    return () if off else tuple(program for program in found if program is not None)


def _program(name: str, entry: ProgramEntry) -> EditProgram | None:
    if entry.disabled is True or not entry.command:
        return None
    extensions = () if entry.extensions is UNSET else entry.extensions
    return EditProgram(
        name=name,
        command=entry.command,
        extensions=tuple(f".{extension.lstrip('.')}" for extension in extensions),
        environment={**(entry.env or {}), **(entry.environment or {})},
        initialization=entry.initialization or {},
    )
