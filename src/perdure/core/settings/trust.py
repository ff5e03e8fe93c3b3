"""Trust in a project's configuration: what one of its documents asks for that only a person grants.

A project's documents come with a directory that somebody else wrote. Most of what they say holds
anyway (core.settings.settings). A program that they name is not started, and a credential is not
sent to an address that they name, until a person has granted the document: exactly these bytes at
this place. What was granted is kept in location.config.trust; people are asked by the command line.

Invariant: a wish is read from the document that is in force, never from the file again. A provider
with a key of its own in the same document asks for nothing.
"""

import hashlib
import shlex
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import UNSET

from perdure.core.config_file.entries import ModelEntry, ProviderEntry
from perdure.core.config_file.problem import format_address
from perdure.core.credentials import keys as credential
from perdure.core.settings.document import Document
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

_COMMAND_CHARS_MAX: Final = 1_000
_PROGRAMS: Final[tuple[tuple[str, ...], ...]] = (
    ("formatter",),
    ("lsp",),
    ("diagnostics",),
    ("experimental", "diagnostics"),
    ("mcp", "servers"),
)
"""Objects whose entries name programs."""
_PLUGINS: Final[tuple[tuple[str, ...], ...]] = (("plugin",), ("plugins",))
"""Lists whose items are programs."""
_LOOPBACK: Final = ("http://localhost", "http://127.0.0.1", "http://[::1]")


class ProgramRequest(Value):
    """A program that is to be started."""

    path: str
    at: Address
    command: str

    @property
    def says(self) -> str:
        return _escape_unprintable(f"run {self.command} ({format_address(self.at)})")


class KeyRequest(Value):
    """A credential of a provider that is to be sent to addresses which the document names."""

    path: str
    provider: str
    names: tuple[str, ...]
    """The variables that hold it, as the document names them."""
    origins: tuple[str, ...]

    @property
    def says(self) -> str:
        variables = f" ({', '.join(self.names)})" if self.names else ""
        return _escape_unprintable(
            f"send your key for {self.provider}{variables} to {', '.join(self.origins)}"
        )


TrustRequest = ProgramRequest | KeyRequest


def list_requests(document: Document) -> tuple[TrustRequest, ...]:
    """What the document asks for; nothing, if it is the user's own."""
    if document.trust == "user":
        return ()
    return (*_programs(document), *_plugins(document), *key_requests(document))


def key_requests(document: Document) -> tuple[KeyRequest, ...]:
    """The credentials that a project's document asks for."""
    found = ((name, key_origins(entry)) for name, entry in document.providers.items())
    return tuple(
        KeyRequest(document.path, name, _variables(document.providers[name]), origins)
        for name, origins in found
        if origins
    )


def key_origins(entry: JsonObject) -> tuple[str, ...]:
    """Where a provider's entry would have somebody else's key sent; nowhere if it has its own."""
    typed = codec.convert(ProviderEntry, entry)
    origins = credential.entry_origins(typed)
    if _has_own_key(typed):
        return ()
    # A server on this machine that names no variable is most likely one that wants no key.
    wanted = bool(typed.env) or any(not origin.startswith(_LOOPBACK) for origin in origins)
    return tuple(dict.fromkeys(origins)) if wanted else ()


def digest(document: Document) -> str:
    """What stands for the bytes of a document."""
    return hashlib.sha256(document.text).hexdigest()


def list_ungranted(documents: Sequence[Document]) -> tuple[TrustRequest, ...]:
    """What is asked for and was not granted."""
    return tuple(
        wish
        for document in documents
        if not document.is_trusted
        for wish in list_requests(document)
    )


def _programs(document: Document) -> Iterator[ProgramRequest]:
    for at in _PROGRAMS:
        entries = _value_at(document.written, at)
        if not jsonc.is_object(entries):
            continue
        for name, entry in entries.items():
            # An entry without a command may still change the environment of somebody's program.
            if jsonc.is_object(entry) and entry.get("type") != "remote" and not _is_off(entry):
                yield ProgramRequest(
                    document.path, (*at, name), _format_command(entry.get("command", name))
                )


def _plugins(document: Document) -> Iterator[ProgramRequest]:
    for at in _PLUGINS:
        listed = _value_at(document.written, at)
        if jsonc.is_list(listed):
            for index, plugin in enumerate(listed):
                yield ProgramRequest(document.path, (*at, index), _format_command(plugin))


def _is_off(entry: JsonObject) -> bool:
    return entry.get("disabled") is True or entry.get("enabled") is False


def _value_at(written: JsonObject, at: tuple[str, ...]) -> JsonValue:
    value: JsonValue = written
    for key in at:
        value = value.get(key) if jsonc.is_object(value) else None
    return value


def _format_command(command: JsonValue) -> str:
    """A command as a shell would read it, for people; whatever was written in its place."""
    words: list[JsonValue] = list(command) if jsonc.is_list(command) else [command]
    line = shlex.join(word if isinstance(word, str) else repr(word) for word in words)
    more = len(line) - _COMMAND_CHARS_MAX
    return line if more <= 0 else f"{line[:_COMMAND_CHARS_MAX]}... ({more} more characters)"


def _escape_unprintable(text: str) -> str:
    """Nothing that a person decides on may hide: what cannot be printed is spelled out."""
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape", "surrogatepass").decode()
        for each in text
    )


def _variables(entry: JsonObject) -> tuple[str, ...]:
    env = codec.convert(ProviderEntry, entry).env
    return () if env is UNSET else env


def _has_own_key(entry: ProviderEntry) -> bool:
    parts: tuple[ProviderEntry | ModelEntry, ...] = (entry, *(entry.models or {}).values())
    return any(credential.own_key(part) for part in parts)
