"""The keys of a configuration document, and which of them count when a project sets them.

A project's documents are not written by the user. A key that only describes the project or narrows
what the user allows always counts. One that acts (names a program, an address, a model, an agent)
counts after a person has trusted the document, and some never count. core.settings.trust says in
words what such a key asks for.

Invariant: every key that core.settings.document reads has a row in `KEYS`.
"""

from collections.abc import Iterable
from typing import Final, Literal

from msgspec.structs import replace

from perdure.core.settings.document import Document
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Value

Counts = Literal["always", "narrows", "files", "trusted", "never"]
"""When the key of a project counts.

`narrows`: always, and it can only take away from what the user allows. `files`: its paths of the
project always count, its addresses after trust.
"""


class Key(Value):
    at: Address
    counts: Counts
    field: str | None = None
    """The field of Document that holds its value; None if only other programs read it."""


KEYS: Final = (
    Key(("$schema",), "always"),
    Key(("agents",), "trusted", "agents"),
    Key(("attachments",), "always", "attachments"),
    Key(("autoupdate",), "trusted"),
    Key(("commands",), "trusted", "commands"),
    Key(("compaction",), "always", "compaction"),
    Key(("default_agent",), "trusted", "default_agent"),
    Key(("enterprise",), "trusted"),
    Key(("experimental", "bash"), "never", "bash"),
    Key(("experimental", "budget"), "narrows", "budget"),
    Key(("experimental", "diagnostics"), "trusted", "diagnostics"),
    Key(("experimental", "dropped_answers"), "never", "dropped_answers"),
    Key(("experimental", "logins"), "never", "logins"),
    Key(("experimental", "mcp_search"), "always", "mcp_search"),
    Key(("experimental", "patience"), "trusted", "patience"),
    Key(("experimental", "policies"), "narrows", "policies"),
    Key(("experimental", "recovery"), "never", "recovery"),
    Key(("experimental", "timezone"), "always", "timezone"),
    Key(("experimental", "webfetch"), "never", "webfetch"),
    Key(("experimental", "websearch"), "never", "websearch"),
    Key(("formatter",), "trusted", "formatter"),
    Key(("instructions",), "files", "instructions"),
    Key(("lsp",), "trusted", "lsp"),
    Key(("mcp",), "trusted", "mcp"),
    Key(("model",), "trusted", "model"),
    Key(("permissions",), "narrows", "permissions"),
    Key(("plugins",), "trusted"),
    Key(("providers",), "trusted", "providers"),
    Key(("references",), "trusted", "references"),
    Key(("sandbox",), "never", "sandbox"),
    Key(("share",), "trusted"),
    Key(("shell",), "never", "shell"),
    Key(("skills",), "files", "skills"),
    Key(("small_model",), "trusted"),
    Key(("snapshots",), "trusted", "snapshots"),
    Key(("tool_output",), "always", "output"),
    Key(("username",), "always"),
    Key(("watcher",), "always"),
)

USER_ONLY: Final = tuple(key for key in KEYS if key.counts == "never")


def counted(document: Document) -> Document:
    """The document with only those settings that count now."""
    if document.trust == "user":
        return document
    off: JsonObject = {}
    for key in KEYS:
        if key.field is None:
            continue
        if key.counts == "never" or (key.counts == "trusted" and not document.is_trusted):
            off[key.field] = getattr(_BLANK, key.field)
        elif key.counts == "files" and not document.is_trusted:
            texts: tuple[str, ...] = getattr(document, key.field)
            off[key.field] = tuple(counted_items(document, key.at, texts))
    return replace(document, **off)


def find_key(at: Address) -> Key | None:
    """The row of the key at this address, or of the key that contains it."""
    return next((key for key in KEYS if at[: len(key.at)] == key.at), None)


def is_refused(document: Document, at: Address) -> bool:
    """Whether the value at `at` does not count because the document is a project's."""
    key = None if document.trust == "user" else find_key(at)
    if key is None:
        return False
    return key.counts == "never" or (key.counts == "trusted" and not document.is_trusted)


def counted_items(document: Document, at: Address, items: Iterable[JsonValue]) -> list[JsonValue]:
    """The items of the list at `at` that count: addresses only after trust."""
    key = find_key(at)
    if document.is_trusted or key is None or key.counts != "files":
        return list(items)
    return [item for item in items if not (isinstance(item, str) and is_address(item))]


def is_address(text: str) -> bool:
    """Whether an item of `instructions` or `skills` is an address and not a path."""
    return text.lower().lstrip().startswith(("http:", "https:"))


def written_value(written: JsonObject, at: Address) -> JsonValue:
    """The value at `at`; None if there is none."""
    value: JsonValue = written
    for name in at:
        value = value.get(str(name)) if jsonc.is_object(value) else None
    return value


_BLANK: Final = Document(path="", trust="project")
