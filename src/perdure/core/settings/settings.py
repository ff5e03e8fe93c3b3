"""Settings: the merged configuration documents of a Location; the nearest document wins.

A project's documents may set rules, agents, models, and providers with their addresses. They may
not choose the shell or the secrets that commands get, open the user's network to webfetch, choose
the search service, move a provider of the user's own documents to another address (the user's key
would follow it), or lift a policy of the user. No key names a directory of this program. Programs
and keys of other documents need a person's trust (core.settings.trust). Placeholders are
core.config_file.substitution.

Invariant: merging never fails; everything left out is reported in `problems`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET, field

from perdure.core import limits
from perdure.core.config_file import problem as config_problem
from perdure.core.config_file.entries import (
    AgentEntry,
    BashEntry,
    BudgetEntry,
    CommandEntry,
    CompactionEntry,
    DropPolicy,
    OutputEntry,
    Policy,
    ProviderEntry,
    RecoveryPolicy,
)
from perdure.core.config_file.problem import Problem, format_address
from perdure.core.config_file.substitution import Trust
from perdure.core.credentials import oauth
from perdure.core.credentials.oauth import LoginMethod
from perdure.core.request import media_limits
from perdure.core.request.media_limits import ImageBounds
from perdure.core.request.tool_output import OutputLimits
from perdure.core.sandbox import settings as sandbox_settings
from perdure.core.sandbox.settings import SandboxSettings
from perdure.core.session import retry
from perdure.core.session.budget import NO_BUDGET, Budget
from perdure.core.session.retry import USUAL_PATIENCE, Patience
from perdure.core.settings import edit_programs, trust, web
from perdure.core.settings.document import Document
from perdure.core.settings.edit_programs import EditPrograms
from perdure.core.settings.reference import ReferenceEntry
from perdure.core.settings.trust import KeyRequest, ProgramRequest, TrustRequest
from perdure.core.settings.web import WebSettings
from perdure.core.text import jsonc
from perdure.core.text.jsonc import Address
from perdure.schema import codec
from perdure.schema.approval.permission import Ruleset
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.model import ModelRef
from perdure.schema.value import Confidential, Value


class InstructionEntry(Value):
    """One of `instructions`: a path, a pattern or a URL, and its document's directory."""

    text: str
    directory: str
    trust: Trust


class SkillEntry(Value):
    """One of `skills`: the URL or directory of a source, and the trust of its document."""

    text: str
    trust: Trust


class CompactionSettings(Value, kw_only=True):
    auto: bool = True
    buffer_tokens: int = limits.COMPACTION_BUFFER_TOKENS
    """Minimum to keep free in the model's context."""
    keep_tokens: int = limits.COMPACTION_KEEP_TOKENS
    """Size of the newest messages, which stay verbatim."""


class Settings(Confidential, kw_only=True):
    """The configuration in effect at one Location."""

    model: ModelRef | None = None
    default_agent: str | None = None
    shell: str | None = None
    shell_variables: tuple[str, ...] = ()
    """Variables passed to commands although their names look like secrets."""
    sandbox: SandboxSettings = field(default_factory=SandboxSettings)
    """Where commands may write and what they may see."""
    permissions: Ruleset = ()
    agents: tuple[tuple[str, AgentEntry], ...] = ()
    """Changes to agents by name, in order of application."""
    plugin_agents: tuple[tuple[str, AgentEntry], ...] = ()
    """Changes by plugins, which any configuration overrides."""
    commands: tuple[tuple[str, CommandEntry], ...] = ()
    """In order of application; the last of a name wins."""
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict[str, ProviderEntry])
    user_providers: Mapping[str, ProviderEntry] = field(default_factory=dict[str, ProviderEntry])
    """Providers of the user's own documents only; they decide where keys may be sent."""
    policies: tuple[Policy, ...] = ()
    """Statements in order of application; the last that matches wins."""
    tool_output: OutputLimits = field(default_factory=OutputLimits)
    instructions: tuple[InstructionEntry, ...] = ()
    skills: tuple[SkillEntry, ...] = ()
    references: tuple[ReferenceEntry, ...] = ()
    compaction: CompactionSettings = field(default_factory=CompactionSettings)
    budget: Budget = NO_BUDGET
    """The budget of each Session. A project can only lower the user's."""
    web: WebSettings = field(default_factory=WebSettings)
    logins: Mapping[str, tuple[LoginMethod, ...]] = field(
        default_factory=dict[str, tuple[LoginMethod, ...]]
    )
    """Login methods by provider."""
    recovery: RecoveryPolicy | None = None
    """How a request is treated that may have been sent before the process died."""
    dropped_answers: DropPolicy | None = None
    """The treatment of an answer that broke off; None for the usual way."""
    patience: Patience = USUAL_PATIENCE
    """The longest wait of a request for a provider that says "later"."""
    snapshots: bool = True
    """Whether file changes of steps are recorded, so that they can be reverted."""
    images: ImageBounds = field(default_factory=ImageBounds)
    """Maximum size of images for the model."""
    after_edit: EditPrograms = field(default_factory=EditPrograms)
    """Programs that run after a tool has changed a file."""
    timezone: str | None = None
    """IANA name; None means the zone of this machine."""
    may_run_commands: bool = True
    """Whether all programs of the documents may be started. False if a project's document that is
    not trusted names one; see `Document.is_trusted`."""
    granted_keys: tuple[KeyRequest, ...] = ()
    """Keys that may be sent to addresses of project documents which a person trusts."""
    ungranted: tuple[TrustRequest, ...] = ()
    """Requests of project documents that a person has not granted."""
    problems: tuple[Problem, ...] = ()
    documents: tuple[Document, ...] = ()
    """The merged documents, in order of increasing precedence."""


_USER_ONLY: Final[tuple[Address, ...]] = (
    ("shell",),
    ("sandbox",),
    ("experimental", "bash"),
    ("experimental", "webfetch"),
    ("experimental", "websearch"),
    ("experimental", "logins"),
    ("experimental", "recovery"),
    ("experimental", "dropped_answers"),
)


def merge(documents: Sequence[Document]) -> Settings:
    """Merge `documents`, given in order of increasing precedence."""
    users = _providers(document.providers for document in documents if document.trust == "user")
    checked = [_without_moved_providers(document, users) for document in documents]
    ungranted = trust.list_ungranted(documents)
    users_own = [document for document in documents if document.trust == "user"]
    drops: list[DropPolicy | None] = [document.dropped_answers for document in users_own]
    return Settings(
        model=_last(document.model for document in documents),
        default_agent=_last(document.default_agent for document in documents),
        shell=_last(document.shell for document in users_own),
        shell_variables=_shell_variables(documents),
        sandbox=sandbox_settings.merge(document.sandbox for document in users_own),
        permissions=tuple(rule for document in documents for rule in document.permissions),
        agents=_agents(documents, of_plugins=False),
        plugin_agents=_agents(documents, of_plugins=True),
        commands=tuple(command for document in documents for command in document.commands),
        providers=_typed(_providers(providers for providers, _ in checked)),
        user_providers=_typed(users),
        # Reversed, so that no project can lift a denial of the user.
        policies=tuple(policy for document in reversed(documents) for policy in document.policies),
        tool_output=_output_limits(documents),
        instructions=tuple(_instructions(documents)),
        skills=tuple(_skills(documents)),
        references=tuple(_references(documents).values()),
        compaction=_compaction(documents),
        budget=_budget(documents),
        web=web.merge(users_own),
        logins=oauth.methods_by_provider(document.logins for document in users_own),
        recovery=_recovery(documents),
        dropped_answers=_last(drops),
        patience=retry.configured_patience(_last(document.patience for document in documents)),
        snapshots=_last(document.snapshots for document in documents) is not False,
        images=media_limits.configured_bounds(document.attachments for document in documents),
        after_edit=edit_programs.configured_programs(documents),
        timezone=_last(document.timezone for document in documents),
        may_run_commands=not any(isinstance(request, ProgramRequest) for request in ungranted),
        granted_keys=tuple(
            request
            for document in documents
            if document.granted
            for request in trust.key_requests(document)
        ),
        ungranted=ungranted,
        problems=(
            *(problem for document in documents for problem in document.problems),
            *(problem for _, problems in checked for problem in problems),
            *(problem for document in documents for problem in _user_only_problems(document)),
        ),
        documents=tuple(documents),
    )


def overlay(lower: JsonObject, upper: JsonObject) -> JsonObject:
    """Merge `upper` over `lower`: objects key by key; other values are replaced."""
    result = dict(lower)
    for key, value in upper.items():
        below: JsonValue = result.get(key)
        merges = jsonc.is_object(below) and jsonc.is_object(value)
        result[key] = overlay(below, value) if merges else value
    return result


def is_refused(document: Document, at: Address, users: Mapping[str, ProviderEntry]) -> bool:
    """Whether a project's `document` may not set the key at `at`."""
    if document.trust == "user" or not at:
        return False
    if any(at[: len(key)] == key for key in _USER_ONLY):
        return True
    match at:
        case ("providers", str(provider), *below) if below and provider in users:
            return _is_address_key(tuple(below)) and not _may_move(document, provider)
        case _:
            return False


def _last(values: Iterable[codec.T | None]) -> codec.T | None:
    return next((value for value in reversed(tuple(values)) if value is not None), None)


def _agents(
    documents: Sequence[Document], *, of_plugins: bool
) -> tuple[tuple[str, AgentEntry], ...]:
    chosen = (document for document in documents if document.plugin is of_plugins)
    return tuple(change for document in chosen for change in document.agents)


def _output_limits(documents: Sequence[Document]) -> OutputLimits:
    merged: JsonObject = {}
    for document in documents:
        merged |= document.output
    entry = codec.convert(OutputEntry, merged)
    return OutputLimits(
        lines_max=entry.max_lines or limits.TOOL_OUTPUT_LINES_MAX,
        bytes_max=entry.max_bytes or limits.TOOL_OUTPUT_BYTES_MAX,
    )


def _compaction(documents: Sequence[Document]) -> CompactionSettings:
    merged: JsonObject = {}
    for document in documents:
        merged = overlay(merged, document.compaction)
    entry, default = codec.convert(CompactionEntry, merged), CompactionSettings()
    kept = entry.keep.tokens if entry.keep else UNSET
    return CompactionSettings(
        auto=default.auto if entry.auto is UNSET else entry.auto,
        buffer_tokens=default.buffer_tokens if entry.buffer is UNSET else entry.buffer,
        keep_tokens=default.keep_tokens if kept is UNSET else kept,
    )


def _budget(documents: Sequence[Document]) -> Budget:
    values: dict[Trust, JsonObject] = {"user": {}, "project": {}}
    for document in documents:
        values[document.trust] = {**values[document.trust], **document.budget}
    users, projects = (
        Budget.from_settings(codec.convert(BudgetEntry, each)) for each in values.values()
    )
    return users.combine(projects)


def _recovery(documents: Sequence[Document]) -> RecoveryPolicy | None:
    """The policy of the user's last document. One that could never be read may say to ask."""
    for document in reversed(documents):
        if document.trust == "user" and (document.recovery is not None or document.never_read):
            return document.recovery or "ask"
    return None


def _instructions(documents: Sequence[Document]) -> Iterator[InstructionEntry]:
    for document in documents:
        for text in document.instructions:
            yield InstructionEntry(text, document.directory, document.trust)


def _skills(documents: Sequence[Document]) -> Iterator[SkillEntry]:
    for document in documents:
        for text in document.skills:
            yield SkillEntry(text, document.trust)


def _references(documents: Sequence[Document]) -> dict[str, ReferenceEntry]:
    return {entry.name: entry for document in documents for entry in document.references}


def _user_only_problems(document: Document) -> tuple[Problem, ...]:
    if document.trust == "user":
        return ()
    problems = [
        Problem(
            document.path,
            f"`{format_address(at)}` can only be set in your own configuration",
            at=at,
        )
        for at in _USER_ONLY
        if getattr(document, at[-1])
    ]
    return config_problem.with_positions(problems, document.text)


def _shell_variables(documents: Sequence[Document]) -> tuple[str, ...]:
    bash: JsonObject = {}
    for document in documents:
        bash |= document.bash if document.trust == "user" else {}
    allowed = codec.convert(BashEntry, bash).allowed_variables
    return () if allowed is UNSET else allowed


def _providers(layers: Iterable[Mapping[str, JsonObject]]) -> dict[str, JsonObject]:
    merged: dict[str, JsonObject] = {}
    for layer in layers:
        for name, entry in layer.items():
            merged[name] = overlay(merged.get(name, {}), entry)
    return merged


def _typed(providers: Mapping[str, JsonObject]) -> dict[str, ProviderEntry]:
    return {name: codec.convert(ProviderEntry, entry) for name, entry in providers.items()}


def _without_moved_providers(
    document: Document, users: Mapping[str, JsonObject]
) -> tuple[Mapping[str, JsonObject], tuple[Problem, ...]]:
    """The providers of a document, without new addresses for the user's own providers."""
    if document.trust == "user":
        return document.providers, ()
    kept: dict[str, JsonObject] = {}
    problems: list[Problem] = []
    for name, entry in document.providers.items():
        stays = name in users and not _may_move(document, name)
        kept[name] = _without_address(entry) if stays else entry
        if kept[name] != entry:
            message = (
                f"`providers.{name}` is defined in your own configuration or by a plugin; "
                "a project that you do not trust cannot change its address or protocol"
            )
            problems.append(Problem(document.path, message, at=("providers", name, "api")))
    return kept, config_problem.with_positions(problems, document.text)


def _may_move(document: Document, provider: str) -> bool:
    """Whether a person granted the document to move this provider of the user, with its key."""
    entry = document.providers.get(provider)
    return document.granted and entry is not None and bool(trust.key_origins(entry))


def _is_address_key(at: Address) -> bool:
    """Whether `_without_address` removes this key of a provider or a model."""
    if at[0] == "models":
        return len(at) > 2 and _is_address_key(at[2:])
    return (at[0] == "api" and at[1:2] != ("id",)) or at[:3] == ("request", "body", "baseURL")


def _without_address(entry: JsonObject) -> JsonObject:
    result = dict(entry)
    if "api" in result:
        result["api"] = {key: value for key, value in result["api"].items() if key == "id"}
    if "baseURL" in result.get("request", {}).get("body", {}):
        body = {key: value for key, value in result["request"]["body"].items() if key != "baseURL"}
        result["request"] = {**result["request"], "body": body}
    if "models" in result:
        result["models"] = {
            name: _without_address(model) for name, model in result["models"].items()
        }
    return result
