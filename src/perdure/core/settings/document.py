"""A configuration document: the content of one file, checked key by key.

A key of the wrong type is dropped alone and reported with its address and line; an unknown key is
ignored. Finding and reading files is location.config.config, merging documents is
core.settings.settings, and core.config_file.substitution decides where placeholders are allowed.

Invariant: reading a document never fails, whatever value a file decodes to, and no problem quotes
the value of a placeholder.
"""

from collections.abc import Iterator, Mapping
from typing import TypeVar

import msgspec
from msgspec import UNSET, UnsetType, field

from perdure.core.approval.rules import Layer
from perdure.core.config_file import legacy, substitution
from perdure.core.config_file import problem as config_problem
from perdure.core.config_file.entries import (
    AgentEntry,
    AttachmentsEntry,
    BashEntry,
    BudgetEntry,
    CommandEntry,
    CompactionEntry,
    DiagnosticsEntry,
    DropPolicy,
    Entry,
    ExperimentalEntry,
    LoginEntry,
    ModelEntry,
    OtherEntry,
    OutputEntry,
    Policy,
    ProgramEntry,
    ProviderEntry,
    RecoveryPolicy,
    SandboxEntry,
    WebFetchEntry,
    WebSearchEntry,
)
from perdure.core.config_file.mcp_entries import McpEntry, McpServerEntry
from perdure.core.config_file.problem import Problem, format_address
from perdure.core.config_file.substitution import Resolve, Substituted, Trust
from perdure.core.credentials import oauth
from perdure.core.credentials.oauth import LoginMethod
from perdure.core.settings import reference
from perdure.core.settings.reference import ReferenceEntry, ReferenceEntryError
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address
from perdure.schema import codec
from perdure.schema.approval.permission import Rule, Ruleset
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.model import ModelRef
from perdure.schema.value import Confidential

T = TypeVar("T")
EntryT = TypeVar("EntryT", bound=Entry)


class Document(Confidential, kw_only=True):
    """One file, without its invalid parts."""

    path: str
    trust: Trust
    model: ModelRef | None = None
    default_agent: str | None = None
    shell: str | None = None
    timezone: str | None = None
    recovery: RecoveryPolicy | None = None
    dropped_answers: DropPolicy | None = None
    patience: bool | float | None = None
    snapshots: bool | None = None
    permissions: Ruleset = ()
    agents: tuple[tuple[str, AgentEntry], ...] = ()
    providers: Mapping[str, JsonObject] = field(default_factory=dict[str, JsonObject])
    """Each valid as a ProviderEntry; kept as JSON, because documents are merged as JSON."""
    policies: tuple[Policy, ...] = ()
    commands: tuple[tuple[str, CommandEntry], ...] = ()
    instructions: tuple[str, ...] = ()
    skills: tuple[str, ...] = ()
    references: tuple[ReferenceEntry, ...] = ()
    output: JsonObject = field(default_factory=dict[str, JsonValue])
    """Valid as an OutputEntry."""
    compaction: JsonObject = field(default_factory=dict[str, JsonValue])
    """Valid as a CompactionEntry."""
    budget: JsonObject = field(default_factory=dict[str, JsonValue])
    """Valid as a BudgetEntry."""
    bash: JsonObject = field(default_factory=dict[str, JsonValue])
    """Valid as a BashEntry."""
    sandbox: JsonObject = field(default_factory=dict[str, JsonValue])
    """Valid as a SandboxEntry."""
    webfetch: JsonObject = field(default_factory=dict[str, JsonValue])
    """Valid as a WebFetchEntry."""
    websearch: JsonObject = field(default_factory=dict[str, JsonValue])
    """Valid as a WebSearchEntry."""
    logins: tuple[tuple[str, LoginMethod], ...] = ()
    """Pairs of provider and login method."""
    attachments: AttachmentsEntry = field(default_factory=AttachmentsEntry)
    formatter: bool | Mapping[str, ProgramEntry] | None = None
    diagnostics: Mapping[str, ProgramEntry] | None = None
    lsp: bool | Mapping[str, ProgramEntry] | None = None
    mcp: McpEntry = field(default_factory=McpEntry)
    mcp_search: int | None = None
    problems: tuple[Problem, ...] = ()
    written: JsonObject = field(default_factory=dict[str, JsonValue])
    """The whole document in the current form, with placeholders not replaced."""
    directory: str = ""
    """Base directory of relative paths in it."""
    text: bytes = b""
    """The bytes of the file, to find the lines of keys."""
    unread: bool = False
    """Whether the file cannot be read now: the document is as it was last read, or empty."""
    never_read: bool = False
    """Whether nothing of the file is known, because it could not be read so far."""
    plugin: bool = False
    """Whether a plugin made it and not a file. Every other document overrides it."""
    managed: bool = False
    """Whether the administrator of the machine wrote it: it bounds what the user's allow."""
    granted: bool = False
    """Whether a person granted the requests of this project document (core.settings.trust)."""

    @property
    def is_trusted(self) -> bool:
        """Whether its settings that act count; see core.settings.project_keys."""
        return self.trust == "user" or self.granted

    @property
    def layer(self) -> Layer:
        """The owner of the document."""
        return "managed" if self.managed else self.trust


def read(
    path: str,
    trust: Trust,
    value: JsonValue,
    *,
    directory: str = "",
    text: bytes = b"",
    resolve: Resolve | None = None,
) -> Document:
    """Build the document of a file from its decoded `value` and its bytes `text`.

    Without `resolve` placeholders are plain text.
    """
    if not jsonc.is_object(value):
        problem = Problem(path, "a configuration file holds one object; this one is ignored")
        return Document(path=path, trust=trust, problems=(problem,))
    written = legacy.modernize(value)
    substituted = (
        Substituted(written)
        if resolve is None
        else substitution.substitute(written, trust, resolve)
    )
    blank = Document(path=path, trust=trust, written=written, directory=directory, text=text)
    return _filled(blank, substituted)


def parse_model(text: str) -> ModelRef | None:
    """Parse `provider/model`; the model's name may contain more slashes."""
    provider, _, model = text.partition("/")
    return ModelRef(id=model, provider_id=provider) if provider and model else None


def _filled(blank: Document, substituted: Substituted) -> Document:
    """`blank` with the values of all keys."""
    reading = _Reading(blank.path, substituted)
    raw = substituted.value
    texts = reading.entry(_Texts, raw, ())
    experimental = reading.object(raw, "experimental", ())
    plain = reading.entry(ExperimentalEntry, experimental, ("experimental",))
    other = reading.entry(OtherEntry, raw, ())
    return Document(
        path=blank.path,
        trust=blank.trust,
        model=reading.model(texts.model, ("model",)),
        default_agent=texts.default_agent or None,
        shell=texts.shell or None,
        timezone=plain.timezone or None,
        recovery=plain.recovery or None,
        dropped_answers=plain.dropped_answers or None,
        patience=None if plain.patience is UNSET else plain.patience,
        snapshots=None if other.snapshots is UNSET else other.snapshots,
        permissions=reading.items(Rule, raw, "permissions", ()),
        agents=tuple(reading.agents(raw)),
        providers=dict(reading.providers(raw)),
        policies=reading.items(Policy, experimental, "policies", ("experimental",)),
        commands=tuple(reading.commands(raw)),
        instructions=reading.items(str, raw, "instructions", ()),
        skills=reading.items(str, raw, "skills", ()),
        references=tuple(reading.references(raw, blank.directory)),
        output=reading.section(OutputEntry, raw, "tool_output"),
        compaction=reading.section(CompactionEntry, raw, "compaction"),
        budget=reading.section(BudgetEntry, experimental, "budget", ("experimental",)),
        bash=reading.section(BashEntry, experimental, "bash", ("experimental",)),
        sandbox=reading.section(SandboxEntry, raw, "sandbox"),
        webfetch=reading.section(WebFetchEntry, experimental, "webfetch", ("experimental",)),
        websearch=reading.section(WebSearchEntry, experimental, "websearch", ("experimental",)),
        logins=tuple(reading.logins(experimental)),
        attachments=other.attachments or AttachmentsEntry(),
        formatter=None if other.formatter is UNSET else other.formatter,
        diagnostics=reading.diagnostics(experimental),
        lsp=None if other.lsp is UNSET else other.lsp,
        mcp=reading.mcp(raw),
        mcp_search=plain.mcp_search or None,
        problems=config_problem.with_positions(reading.problems, blank.text),
        written=blank.written,
        directory=blank.directory,
        text=blank.text,
    )


class _Texts(Entry, frozen=True):
    """The top-level keys that are plain strings."""

    model: str | UnsetType = UNSET
    default_agent: str | UnsetType = UNSET
    shell: str | UnsetType = UNSET


class _Reading:
    """Reads one document: returns valid parts and collects problems."""

    def __init__(self, path: str, substituted: Substituted) -> None:
        self._path = path
        self._replaced = substituted.replaced
        self.problems: list[Problem] = []
        for refused in substituted.refused:
            self._report(refused.at, f"is ignored: {refused.reason}")

    def entry(self, kind: type[EntryT], raw: JsonObject, at: Address) -> EntryT:
        """The entry from the valid keys of `raw`; every field of `kind` must be optional."""
        try:
            return codec.convert(kind, raw)
        except msgspec.ValidationError:
            return codec.convert(kind, self._sound_keys(kind, raw, at))

    def section(self, kind: type[Entry], raw: JsonObject, key: str, at: Address = ()) -> JsonObject:
        """The valid keys of the object under `key`, as JSON."""
        return codec.to_json_value(self.entry(kind, self.object(raw, key, at), (*at, key)))

    def object(self, raw: JsonObject, key: str, at: Address) -> JsonObject:
        value = raw.get(key, {})
        if jsonc.is_object(value):
            return value
        self._report((*at, key), "must be an object; it is ignored")
        return {}

    def items(self, kind: type[T], raw: JsonObject, key: str, at: Address) -> tuple[T, ...]:
        values: JsonValue = raw.get(key, [])
        if not jsonc.is_list(values):
            self._report((*at, key), "must be a list; it is ignored")
            return ()
        found: list[T] = []
        for index, value in enumerate(values):
            try:
                found.append(codec.convert(kind, value))
            except msgspec.ValidationError as error:
                self._ignore((*at, key, index), error)
        return tuple(found)

    def model(self, text: str | UnsetType, at: Address) -> ModelRef | None:
        if text is UNSET:
            return None
        ref = parse_model(text)
        if ref is None:
            given = "" if at in self._replaced else f", not {text!r}"
            self._report(at, f"must be written provider/model{given}; it is ignored")
        return ref

    def diagnostics(self, experimental: JsonObject) -> Mapping[str, ProgramEntry] | None:
        entry = self.entry(DiagnosticsEntry, experimental, ("experimental",))
        return None if entry.diagnostics is UNSET else entry.diagnostics

    def agents(self, raw: JsonObject) -> Iterator[tuple[str, AgentEntry]]:
        for name, fields, at in self._objects(raw, "agents", ()):
            if "permissions" in fields:
                rules = self.items(Rule, fields, "permissions", at)
                fields["permissions"] = codec.to_json_value(rules)
            entry = self.entry(AgentEntry, fields, at)
            if self.model(entry.model, (*at, "model")) is None:
                entry = msgspec.structs.replace(entry, model=UNSET)
            if entry.models is not UNSET:
                named = tuple(
                    text
                    for index, text in enumerate(entry.models)
                    if self.model(text, (*at, "models", index)) is not None
                )
                entry = msgspec.structs.replace(entry, models=named)
            yield name, entry

    def commands(self, raw: JsonObject) -> Iterator[tuple[str, CommandEntry]]:
        for name, fields, at in self._objects(raw, "commands", ()):
            try:
                entry = codec.convert(CommandEntry, fields)
            except msgspec.ValidationError as error:
                self._ignore(at, error)
                continue
            if self.model(entry.model, (*at, "model")) is None:
                entry = msgspec.structs.replace(entry, model=UNSET)
            yield name, entry

    def providers(self, raw: JsonObject) -> Iterator[tuple[str, JsonObject]]:
        for name, fields, at in self._objects(raw, "providers", ()):
            fields["models"] = {
                model_id: codec.to_json_value(self.entry(ModelEntry, model, model_at))
                for model_id, model, model_at in self._objects(fields, "models", at)
            }
            yield name, codec.to_json_value(self.entry(ProviderEntry, fields, at))

    def logins(self, experimental: JsonObject) -> Iterator[tuple[str, LoginMethod]]:
        at = ("experimental", "logins")
        providers = self.object(experimental, "logins", at[:1])
        for provider in providers:
            for name, fields, place in self._objects(providers, provider, at):
                try:
                    method = oauth.read_method(name, codec.convert(LoginEntry, fields))
                except (msgspec.ValidationError, oauth.LoginMethodError) as error:
                    self._ignore(place, error)
                else:
                    yield provider, method

    def mcp(self, raw: JsonObject) -> McpEntry:
        section = self.object(raw, "mcp", ())
        servers: dict[str, McpServerEntry] = {}
        for name, fields, at in self._objects(section, "servers", ("mcp",)):
            # A server without the part that is wrong would be another one: all of it is left out.
            try:
                servers[name] = codec.convert(McpServerEntry, fields)
            except msgspec.ValidationError as error:
                self._ignore(at, error)
        timeout = {key: section[key] for key in ("timeout",) if key in section}
        entry = self.entry(McpEntry, timeout, ("mcp",))
        return msgspec.structs.replace(entry, servers=servers or UNSET)

    def references(self, raw: JsonObject, directory: str) -> Iterator[ReferenceEntry]:
        for name, value in self.object(raw, "references", ()).items():
            try:
                yield reference.read(name, value, directory=directory)
            except ReferenceEntryError as error:
                self._ignore(("references", name), error)

    def _objects(
        self, raw: JsonObject, key: str, at: Address
    ) -> Iterator[tuple[str, JsonObject, Address]]:
        """The objects of the map under `key`: name, content, and address."""
        values = self.object(raw, key, at)
        for name, value in values.items():
            if jsonc.is_object(value):
                yield name, dict(value), (*at, key, name)
            else:
                self._report((*at, key, name), "must be an object; it is ignored")

    def _sound_keys(self, kind: type[Entry], raw: JsonObject, at: Address) -> JsonObject:
        sound: JsonObject = {}
        for key in kind.__struct_fields__:
            if key not in raw:
                continue
            try:
                codec.convert(kind, {key: raw[key]})
            except msgspec.ValidationError as error:
                self._ignore((*at, key), error)
            else:
                sound[key] = raw[key]
        return sound

    def _ignore(self, at: Address, error: Exception) -> None:
        # The error may quote the value, which may be secret if a placeholder was replaced in it.
        secret = any(place[: len(at)] == at for place in self._replaced)
        self._report(at, "is ignored" if secret else f"is ignored: {error}")

    def _report(self, at: Address, message: str) -> None:
        self.problems.append(Problem(self._path, f"`{format_address(at)}` {message}", at=at))
