"""Where each setting comes from: the key, its value, its owner, and the file and line.

For display. Possible secrets are masked by their key, and a placeholder is shown as written, not
as its value. core.settings.settings decides whether a value takes effect; this only shows it.

Invariant: no origin contains the value of a placeholder.
"""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from perdure.core.approval.rules import Layer
from perdure.core.config_file import substitution
from perdure.core.config_file.entries import AgentEntry, CommandEntry, ProviderEntry
from perdure.core.config_file.problem import Lines, format_address
from perdure.core.credentials import keys
from perdure.core.settings import project_keys, settings
from perdure.core.settings.document import Document
from perdure.core.settings.settings import Settings
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address
from perdure.schema import redaction
from perdure.schema.codec import JsonValue
from perdure.schema.secrets import names as secret_names
from perdure.schema.value import Value

MASK: Final = "***"

_SCHEMA: Final = ("$schema",)
_FIELDS: Final = {
    "agents": frozenset(AgentEntry.__struct_fields__),
    "commands": frozenset(CommandEntry.__struct_fields__),
    "providers": frozenset(ProviderEntry.__struct_fields__),
}
_ADDING: Final = frozenset({"instructions", "permissions", "plugins", "policies", "skills"})
"""Lists to which every document adds."""
_SECRET_NAME: Final = re.compile(
    r"api[-_]?key|token(?!s)|secret|passw|auth(?!or)|credential|cookie", re.IGNORECASE
)
_MAPS_BY_NAME: Final = frozenset(
    {"agents", "commands", "formatter", "lsp", "models", "providers", "references", "servers"}
)
_SECRET_MAPS: Final = frozenset({"headers", "environment", "env"})


class Origin(Value):
    key: str
    value: JsonValue
    """With secrets masked."""
    path: str
    layer: Layer
    line: int | None = None


def list_origins(found: Settings) -> tuple[Origin, ...]:
    """The keys in effect, in alphabetical order; a list has one origin per document."""
    kept: dict[Address, list[Origin]] = {}
    for document in found.documents:
        lines = Lines(document.text)
        for at, value in _in_effect(document, found):
            place = lines.position_of(at)
            line = place.line if place else None
            shown = mask(value, at)
            origin = Origin(format_address(at), shown, document.path, document.layer, line)
            _add(kept, at, origin)
    in_order = sorted(kept.values(), key=lambda all_of_key: all_of_key[0].key)
    return tuple(origin for all_of_key in in_order for origin in all_of_key)


def mask(value: JsonValue, at: Address) -> JsonValue:
    """`value` for display, with keys, headers and other credentials masked."""
    if jsonc.is_object(value):
        return {key: mask(item, (*at, key)) for key, item in value.items()}
    if jsonc.is_list(value):
        masked = [mask(item, (*at, index)) for index, item in enumerate(value)]
        return _mask_words(masked)
    if value is None or isinstance(value, bool):
        return value
    if _is_secret(at):
        written = isinstance(value, str) and substitution.is_placeholder(value)
        return value if written else MASK
    if not isinstance(value, str):
        return value
    return keys.public_url(value) or redaction.redact(value)


def _mask_words(masked: list[JsonValue]) -> list[JsonValue]:
    """A command with the values of its options masked, which stand in words of their own."""
    words = [item for item in masked if isinstance(item, str)]
    if len(words) != len(masked):
        return masked
    return [*redaction.redact_words(words)]


def _in_effect(document: Document, found: Settings) -> Iterator[tuple[Address, JsonValue]]:
    left_out = frozenset(problem.at for problem in document.problems)
    for at, value in _leaves(document.written, ()):
        if not _is_known(at) or settings.is_refused(document, at, found.user_providers):
            continue
        if any(at[: length + 1] in left_out for length in range(len(at))):
            continue
        if jsonc.is_list(value):
            kept = [item for i, item in enumerate(value) if (*at, i) not in left_out]
            yield at, project_keys.counted_items(document, at, kept)
        else:
            yield at, value


def _is_known(at: Address) -> bool:
    if at == _SCHEMA or project_keys.find_key(at) is None:
        return False
    return len(at) < 3 or at[2] in _FIELDS.get(str(at[0]), {at[2]})


def _leaves(value: JsonValue, at: Address) -> Iterator[tuple[Address, JsonValue]]:
    """Every value that is not an object, and empty objects, with their addresses."""
    if jsonc.is_object(value) and value:
        for key, item in value.items():
            yield from _leaves(item, (*at, key))
    elif at:
        yield at, value


def _add(kept: dict[Address, list[Origin]], at: Address, origin: Origin) -> None:
    if at[-1] in _ADDING and at in kept:
        kept[at].append(origin)
    else:
        kept[at] = [origin]


def _is_secret(at: Address) -> bool:
    # The name of an agent or a provider does not say whether it holds a secret.
    names = [
        name
        for above, name in pairwise(("", *at))
        if isinstance(name, str) and above not in _MAPS_BY_NAME
    ]
    inside = any(above in _SECRET_MAPS and isinstance(name, str) for above, name in pairwise(at))
    return inside or any(
        _SECRET_NAME.search(name) or secret_names.is_secret_name(name) for name in names
    )
