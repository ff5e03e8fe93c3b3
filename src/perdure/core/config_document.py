"""A configuration document: what one file says, key by key.

A key of the wrong type is dropped alone and reported with its address; an unknown key is ignored.
Finding and reading files is not done here (location.config), nor laying documents over each other
(core.settings).

Invariant: whatever value a file decodes to, reading it as a document does not fail.
"""

from collections.abc import Iterator, Mapping
from typing import Literal, TypeVar

import msgspec
from msgspec import UNSET, UnsetType, field

from perdure.core import config_legacy, jsonc
from perdure.core.config_entry import (
    AgentEntry,
    Entry,
    ModelEntry,
    OutputEntry,
    Policy,
    ProviderEntry,
)
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.model import ModelRef
from perdure.schema.permission import Rule, Ruleset
from perdure.schema.value import Value

Trust = Literal["user", "project"]
"""Whose document it is: the user's own, or one that came with the directory."""

T = TypeVar("T")
EntryT = TypeVar("EntryT", bound=Entry)


class Problem(Value):
    """Something in a document that was left out, and where. `line` is known for syntax only."""

    path: str
    message: str
    line: int | None = None

    def __str__(self) -> str:
        place = self.path if self.line is None else f"{self.path}:{self.line}"
        return f"{place}: {self.message}"


class Document(Value, kw_only=True):
    """One file after everything that makes no sense was dropped."""

    path: str
    trust: Trust
    model: ModelRef | None = None
    default_agent: str | None = None
    shell: str | None = None
    permissions: Ruleset = ()
    agents: tuple[tuple[str, AgentEntry], ...] = ()
    providers: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Each valid as a ProviderEntry; kept as JSON because that is how layers merge."""
    policies: tuple[Policy, ...] = ()
    output: JsonObject = field(default_factory=dict[str, JsonValue])
    """Valid as an OutputEntry."""
    problems: tuple[Problem, ...] = ()


def read(path: str, trust: Trust, value: JsonValue) -> Document:
    """The document that the decoded content of a file is."""
    if not jsonc.is_object(value):
        problem = Problem(path, "a configuration file holds one object; this one is ignored")
        return Document(path=path, trust=trust, problems=(problem,))
    raw = config_legacy.modernize(value)
    reading = _Reading(path)
    texts = reading.entry(_Texts, raw, "")
    experimental = reading.object(raw, "experimental", "")
    output = reading.entry(OutputEntry, reading.object(raw, "tool_output", ""), "tool_output.")
    return Document(
        path=path,
        trust=trust,
        model=reading.model(texts.model, "model"),
        default_agent=texts.default_agent or None,
        shell=texts.shell or None,
        permissions=reading.items(Rule, raw, "permissions", ""),
        agents=tuple(reading.agents(raw)),
        providers=dict(reading.providers(raw)),
        policies=reading.items(Policy, experimental, "policies", "experimental."),
        output=codec.to_json_value(output),
        problems=tuple(reading.problems),
    )


def parse_model(text: str) -> ModelRef | None:
    """`provider/model`, where the model's own name may hold more slashes."""
    provider, _, model = text.partition("/")
    return ModelRef(id=model, provider_id=provider) if provider and model else None


class _Texts(Entry, frozen=True):
    """The top-level keys that are plain texts."""

    model: str | UnsetType = UNSET
    default_agent: str | UnsetType = UNSET
    shell: str | UnsetType = UNSET


class _Reading:
    """One document being read: takes what is sound and collects what is not."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.problems: list[Problem] = []

    def entry(self, kind: type[EntryT], raw: JsonObject, at: str) -> EntryT:
        """The entry that the sound keys of `raw` make; every field of `kind` is optional."""
        try:
            return codec.convert(kind, raw)
        except msgspec.ValidationError:
            return codec.convert(kind, self._sound_keys(kind, raw, at))

    def object(self, raw: JsonObject, key: str, at: str) -> JsonObject:
        value = raw.get(key, {})
        if jsonc.is_object(value):
            return value
        self._report(f"`{at}{key}` must be an object; it is ignored")
        return {}

    def items(self, kind: type[T], raw: JsonObject, key: str, at: str) -> tuple[T, ...]:
        values: JsonValue = raw.get(key, [])
        if not jsonc.is_list(values):
            self._report(f"`{at}{key}` must be a list; it is ignored")
            return ()
        found: list[T] = []
        for index, value in enumerate(values):
            try:
                found.append(codec.convert(kind, value))
            except msgspec.ValidationError as error:
                self._report(f"`{at}{key}[{index}]` is ignored: {error}")
        return tuple(found)

    def model(self, text: str | UnsetType, at: str) -> ModelRef | None:
        if text is UNSET:
            return None
        ref = parse_model(text)
        if ref is None:
            self._report(f"`{at}` must be written provider/model, not {text!r}; it is ignored")
        return ref

    def agents(self, raw: JsonObject) -> Iterator[tuple[str, AgentEntry]]:
        for name, fields, at in self._objects(raw, "agents", ""):
            if "permissions" in fields:
                rules = self.items(Rule, fields, "permissions", at)
                fields["permissions"] = codec.to_json_value(rules)
            entry = self.entry(AgentEntry, fields, at)
            if self.model(entry.model, f"{at}model") is None:
                entry = msgspec.structs.replace(entry, model=UNSET)
            yield name, entry

    def providers(self, raw: JsonObject) -> Iterator[tuple[str, JsonObject]]:
        for name, fields, at in self._objects(raw, "providers", ""):
            fields["models"] = {
                model_id: codec.to_json_value(self.entry(ModelEntry, model, model_at))
                for model_id, model, model_at in self._objects(fields, "models", at)
            }
            yield name, codec.to_json_value(self.entry(ProviderEntry, fields, at))

    def _objects(self, raw: JsonObject, key: str, at: str) -> Iterator[tuple[str, JsonObject, str]]:
        """The objects of the map under `key`: name, content, and the address of its keys."""
        values = self.object(raw, key, at)
        for name, value in values.items():
            if jsonc.is_object(value):
                yield name, dict(value), f"{at}{key}.{name}."
            else:
                self._report(f"`{at}{key}.{name}` must be an object; it is ignored")

    def _sound_keys(self, kind: type[Entry], raw: JsonObject, at: str) -> JsonObject:
        sound: JsonObject = {}
        for key in kind.__struct_fields__:
            if key not in raw:
                continue
            try:
                codec.convert(kind, {key: raw[key]})
            except msgspec.ValidationError as error:
                self._report(f"`{at}{key}` is ignored: {error}")
            else:
                sound[key] = raw[key]
        return sound

    def _report(self, message: str) -> None:
        self.problems.append(Problem(self._path, message))
