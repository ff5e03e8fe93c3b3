"""Trust in a project's configuration: the requests of a document that only a person can grant.

A project's documents are not written by the user. Keys that act (core.settings.project_keys) have
no effect until a person has granted the document: this acting content at this place. Each request
says in words what would be granted. Grants are stored by location.config.trust; the command line
asks the person.

Invariant: requests are read from the document in effect, never from the file again, and whatever a
grant turns on has a request and is part of the digest.
"""

import hashlib
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET

from perdure.core.config_file.entries import ModelEntry, ProviderEntry
from perdure.core.config_file.problem import format_address
from perdure.core.credentials import keys as credential
from perdure.core.settings import project_keys
from perdure.core.settings.document import Document
from perdure.core.settings.project_keys import Key
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address
from perdure.net import loopback
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.settings.trust import WishKind
from perdure.schema.value import Value

_TEXT_CHARS_MAX: Final = 1_000


class TrustRequest(Value):
    """A request of a document that has no effect until it is granted."""

    kind: WishKind
    path: str
    at: Address
    text: str

    @property
    def description(self) -> str:
        """What it would do; completes a sentence that begins with its path and `would`."""
        return _escape_unprintable(f"{self.text} ({format_address(self.at)})")


class KeyRequest(Value):
    """A request to send a provider's credential to addresses that the document names."""

    provider: str
    names: tuple[str, ...]
    """The variables of the credential, as named in the document."""
    origins: tuple[str, ...]


def list_requests(document: Document) -> tuple[TrustRequest, ...]:
    """The requests of a document; none if it is the user's own."""
    if document.trust == "user":
        return ()
    return tuple(
        TrustRequest(kind, document.path, at, text)
        for key, value in _acting(document)
        for kind, at, text in _describe(document, key, value)
    )


def key_requests(document: Document) -> tuple[KeyRequest, ...]:
    """The credentials that a project's document requests."""
    found = ((name, key_origins(entry)) for name, entry in document.providers.items())
    return tuple(
        KeyRequest(name, _variables(document.providers[name]), origins)
        for name, origins in found
        if origins
    )


def key_origins(entry: JsonObject) -> tuple[str, ...]:
    """Where a provider's entry would send the user's key; empty if it has its own key."""
    typed = codec.convert(ProviderEntry, entry)
    origins = credential.entry_origins(typed)
    if _has_own_key(typed):
        return ()
    # A server on this machine that names no variable is most likely one that wants no key.
    wanted = bool(typed.env) or not all(map(_is_local, origins))
    return tuple(dict.fromkeys(origins)) if wanted else ()


def digest(document: Document) -> str:
    """The hash of everything in a document that a grant turns on."""
    acting = [(key.at, value) for key, value in _acting(document)]
    # Texts of agents and commands may include files, whose content counts too.
    included = codec.to_json_value((document.agents, document.commands))
    whole = repr((acting, included)).encode(errors="surrogatepass")
    return hashlib.sha256(whole).hexdigest()


def list_ungranted(documents: Sequence[Document]) -> tuple[TrustRequest, ...]:
    """The requests that were not granted."""
    return tuple(
        wish
        for document in documents
        if not document.is_trusted
        for wish in list_requests(document)
    )


def _acting(document: Document) -> Iterator[tuple[Key, JsonValue]]:
    """The keys of a document that count only after trust, with their values as written."""
    for key in project_keys.KEYS:
        value = project_keys.written_value(document.written, key.at)
        if key.counts == "files" and jsonc.is_list(value):
            value = [item for item in value if _is_address(item)]
        elif key.counts != "trusted":
            continue
        if value is not None and value not in ({}, []):
            yield key, value


def _is_address(item: JsonValue) -> bool:
    return isinstance(item, str) and project_keys.is_address(item)


_Words = tuple[WishKind, Address, str]
_Described = Iterator[_Words]


def _describe(document: Document, key: Key, value: JsonValue) -> list[_Words]:
    found = list(_describe_parts(document, key, value))
    if found:
        return found
    name = str(key.at[-1])
    kind: WishKind = "model" if name in {"model", "small_model"} else "setting"
    return [(kind, key.at, f"set {name} to {_shown(value)}")]


def _describe_parts(document: Document, key: Key, value: JsonValue) -> _Described:
    name = str(key.at[-1])
    if key.counts == "files" or name == "plugins":
        yield from _items(key, value)
    elif name in _PARTS and jsonc.is_object(value):
        entries: JsonObject = value
        if name == "mcp":
            inner: JsonValue = value.get("servers")
            entries = inner if jsonc.is_object(inner) else {}
        for entry_name, entry in entries.items():
            at = (*key.at, "servers", entry_name) if name == "mcp" else (*key.at, entry_name)
            if name == "providers" and entry_name in document.providers:
                yield from _keys(document, entry_name, at)
            part = entry if jsonc.is_object(entry) else {"value": entry}
            kind, text = _PARTS[name](document, entry_name, part)
            yield kind, at, text


def _items(key: Key, value: JsonValue) -> _Described:
    listed: list[JsonValue] = list(value) if jsonc.is_list(value) else [value]
    for index, item in enumerate(listed):
        at = (*key.at, index) if key.at[-1] == "plugins" else key.at
        if key.at[-1] == "plugins":
            yield "program", at, f"run {_shown_command(item)}"
        elif key.at[-1] == "skills":
            yield "address", at, f"download skills from {_shown(item)}"
        else:
            yield "address", at, f"give the model the page {_shown(item)}"


def _keys(document: Document, provider: str, at: Address) -> _Described:
    entry = document.providers[provider]
    origins = key_origins(entry)
    if origins:
        names = _variables(entry)
        variables = f" ({', '.join(names)})" if names else ""
        yield "key", at, f"send your key for {provider}{variables} to {', '.join(origins)}"


def _program(document: Document, name: str, entry: JsonObject) -> tuple[WishKind, str]:
    if entry.get("disabled") is True or entry.get("enabled") is False:
        return "setting", f"turn {name} off"
    # An entry without a command may still change the environment of another program.
    added = [f"{kind} {_shown(entry[kind])}" for kind in ("environment", "env") if kind in entry]
    return "program", " with ".join([f"run {_shown_command(entry.get('command', name))}", *added])


def _server(document: Document, name: str, entry: JsonObject) -> tuple[WishKind, str]:
    if entry.get("type") == "remote":
        return "address", f"connect to the MCP server {name} at {_shown(entry.get('url'))}"
    return _program(document, name, entry)


def _provider(document: Document, name: str, entry: JsonObject) -> tuple[WishKind, str]:
    valid = codec.convert(ProviderEntry, document.providers.get(name, {}))
    origins = credential.entry_origins(valid)
    at = f" at {', '.join(dict.fromkeys(origins))}" if origins else ""
    return "provider", f"send conversations to the provider {name}{at}: {_shown(_masked(entry))}"


def _agent(document: Document, name: str, entry: JsonObject) -> tuple[WishKind, str]:
    return "agent", f"add or change the agent {name}: {_shown(entry)}"


def _command(document: Document, name: str, entry: JsonObject) -> tuple[WishKind, str]:
    return "command", f"offer the command /{name}: {_shown(entry)}"


def _reference(document: Document, name: str, entry: JsonObject) -> tuple[WishKind, str]:
    return "address", f"let the model read the reference {name}: {_shown(entry)}"


_PARTS: Final[Mapping[str, Callable[[Document, str, JsonObject], tuple[WishKind, str]]]] = {
    "agents": _agent,
    "commands": _command,
    "diagnostics": _program,
    "formatter": _program,
    "lsp": _program,
    "mcp": _server,
    "providers": _provider,
    "references": _reference,
}
"""Keys whose value is an object of named parts, and how a part is described."""


def _is_local(origin: str) -> bool:
    return origin.startswith("http://") and loopback.is_loopback_url(origin)


def _masked(entry: JsonObject) -> JsonObject:
    """A provider's entry without its own key, which need not be shown."""
    return {
        name: _masked(value)
        if jsonc.is_object(value)
        else "***"
        if name == "apiKey" and isinstance(value, str)
        else value
        for name, value in entry.items()
    }


def _shown(value: JsonValue) -> str:
    text = value if isinstance(value, str) else _plain(value)
    more = len(text) - _TEXT_CHARS_MAX
    return text if more <= 0 else f"{text[:_TEXT_CHARS_MAX]}... ({more} more characters)"


def _plain(value: JsonValue) -> str:
    """A value for a person, in one line."""
    if jsonc.is_object(value):
        return ", ".join(f"{name} {_plain_part(part)}" for name, part in value.items())
    if jsonc.is_list(value):
        return ", ".join(map(_plain_part, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _plain_part(value: JsonValue) -> str:
    text = _plain(value)
    return f"({text})" if jsonc.is_object(value) or jsonc.is_list(value) else text


def _shown_command(command: JsonValue) -> str:
    """A command as a shell line; also if it is not a valid command."""
    words: list[JsonValue] = list(command) if jsonc.is_list(command) else [command]
    return _shown(shlex.join(word if isinstance(word, str) else repr(word) for word in words))


def _escape_unprintable(text: str) -> str:
    """`text` with unprintable characters escaped, so that a person sees all of it."""
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
