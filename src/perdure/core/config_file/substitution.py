"""Placeholders in a configuration document: `{env:NAME}` and `{file:path}` inside a string.

The caller resolves placeholders, because it reads variables and files. This module decides where
one is allowed: anywhere in a document of the user, and almost nowhere in one of a project, since
most of it is sent over the network (ADR 0010). Replaced text is not searched for placeholders.

Invariant: a string with a placeholder that is not allowed or cannot be resolved is left out as a
whole. No refusal contains the value of a placeholder.
"""

import re
from collections.abc import Callable
from typing import Final, Literal

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address
from perdure.lazy_pattern import lazy_pattern
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Confidential, Value

Trust = Literal["user", "project"]
"""Whether a document is the user's own or part of a project."""

_PLACEHOLDER: Final = lazy_pattern(r"\{(env|file):([^{}]*)\}")
_TEXTS: Final = frozenset(
    {("agents", "system"), ("agents", "description"), ("commands", "template")}
)
"""Section and field of texts for the model, where a project may include its own files."""
_ONLY_YOURS: Final = "is only replaced in your own configuration"
_TOO_MUCH: Final = f"would put in more than {limits.CONFIG_SUBSTITUTED_CHARS_MAX} characters"


class Placeholder(Value):
    kind: Literal["env", "file"]
    name: str

    def __str__(self) -> str:
        return f"{{{self.kind}:{self.name}}}"


class Unresolved(Value):
    """Why a placeholder has no value; the reason completes a sentence that begins with it."""

    reason: str


Resolve = Callable[[Placeholder], str | Unresolved]


class Refused(Value):
    at: Address
    reason: str


class Substituted(Confidential):
    value: JsonObject
    replaced: frozenset[Address] = frozenset()
    """Addresses of replaced texts, which may be secret."""
    refused: tuple[Refused, ...] = ()


def substitute(raw: JsonObject, trust: Trust, resolve: Resolve) -> Substituted:
    """`raw`, in the current form, with its placeholders replaced. The argument is not changed."""
    walk = _Walk(trust, resolve)
    value = walk.object(raw if trust == "user" else _keys_by_name(raw), ())
    return Substituted(value, frozenset(walk.replaced), tuple(walk.refused))


def is_placeholder(text: str) -> bool:
    """Whether `text` is one placeholder and nothing else."""
    return _PLACEHOLDER.fullmatch(text) is not None


class _LeftOutError(Exception):
    """The current value and its key must be left out."""


class _Walk:
    """One walk over a document."""

    def __init__(self, trust: Trust, resolve: Resolve) -> None:
        self._trust: Trust = trust
        self._resolve = resolve
        self._chars_left = limits.CONFIG_SUBSTITUTED_CHARS_MAX
        self.replaced: set[Address] = set()
        self.refused: list[Refused] = []

    def object(self, value: JsonObject, at: Address) -> JsonObject:
        kept: JsonObject = {}
        for key, item in value.items():
            try:
                kept[key] = self._value(item, (*at, key))
            except _LeftOutError:
                continue
        return kept

    def _value(self, value: JsonValue, at: Address) -> JsonValue:
        if jsonc.is_object(value):
            return self.object(value, at)
        if jsonc.is_list(value):
            # A list without one of its items would mean something else: it is left out.
            return [self._value(item, (*at, index)) for index, item in enumerate(value)]
        if isinstance(value, str) and "{" in value:
            return self._text(value, at)
        return value

    def _text(self, text: str, at: Address) -> str:
        def put_in(match: re.Match[str]) -> str:
            kind: Literal["env", "file"] = "env" if match[1] == "env" else "file"
            found = self._found(Placeholder(kind, match[2].strip()), at)
            self.replaced.add(at)
            return found

        return _PLACEHOLDER.sub(put_in, text)

    def _found(self, placeholder: Placeholder, at: Address) -> str:
        allowed = self._trust == "user" or _is_text_of_a_project(placeholder, at)
        found = self._resolve(placeholder) if allowed else Unresolved(_ONLY_YOURS)
        if isinstance(found, str):
            self._chars_left -= len(found)
            if self._chars_left >= 0:
                return found
            found = Unresolved(_TOO_MUCH)
        self.refused.append(Refused(at, f"{placeholder} {found.reason}"))
        raise _LeftOutError


def _is_text_of_a_project(placeholder: Placeholder, at: Address) -> bool:
    return placeholder.kind == "file" and len(at) == 3 and (at[0], at[2]) in _TEXTS


def _keys_by_name(raw: JsonObject) -> JsonObject:
    """Turn `{env:NAME}` keys of a project's providers into `env` entries.

    Then core.credentials.keys alone decides where a variable may be sent.
    """
    providers: JsonValue = raw.get("providers")
    if not jsonc.is_object(providers):
        return raw
    return {**raw, "providers": {name: _key_by_name(entry) for name, entry in providers.items()}}


def _key_by_name(entry: JsonValue) -> JsonValue:
    for holder, part in (("request", "body"), ("api", "settings")):
        above: JsonValue = entry.get(holder) if jsonc.is_object(entry) else None
        fields: JsonValue = above.get(part) if jsonc.is_object(above) else None
        key: JsonValue = fields.get("apiKey") if jsonc.is_object(fields) else None
        match = _PLACEHOLDER.fullmatch(key) if isinstance(key, str) else None
        if match is None or match[1] != "env":
            continue
        names: JsonValue = entry.get("env", [])
        rest = {name: value for name, value in fields.items() if name != "apiKey"}
        if jsonc.is_list(names):
            entry = {**entry, "env": [*names, match[2]], holder: {**above, part: rest}}
    return entry
