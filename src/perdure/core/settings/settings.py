"""Settings: the merged configuration documents of a Location; the nearest document wins.

core.settings.project_keys defines which keys of a project's documents count, before and after a
person's trust. Permissions, budgets and policies are merged by layer: the managed configuration
bounds the user's, and both bound a project's. A trusted project may move a provider of the user to
another address only with the grant for its key. No key names a directory of this program.
Placeholders are core.config_file.substitution.

Invariant: merging never fails; everything left out is reported in `problems`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Final

from msgspec import UNSET, field
from msgspec.structs import replace

from perdure.core import limits
from perdure.core.approval.rules import Layer
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
from perdure.core.settings import (
    edit_programs,
    mcp_servers,
    project_keys,
    provider_moves,
    trust,
    web,
)
from perdure.core.settings.document import Document
from perdure.core.settings.edit_programs import EditPrograms
from perdure.core.settings.mcp_servers import McpSettings
from perdure.core.settings.reference import ReferenceEntry
from perdure.core.settings.trust import KeyRequest, TrustRequest
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


class RuleLayers(Value, kw_only=True):
    """Permission rules for all agents, or for one, by the owner of their documents."""

    managed: Ruleset = ()
    user: Ruleset = ()
    project: Ruleset = ()

    def add(self, layer: Layer, rules: Ruleset) -> "RuleLayers":
        """These rules with further ones of a layer, which come last there."""
        return replace(self, **{layer: (*getattr(self, layer), *rules)})


class AgentChange(Value):
    """An entry of `agents`, with the owner of its document."""

    name: str
    entry: AgentEntry
    layer: Layer


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
    permissions: RuleLayers = field(default_factory=RuleLayers)
    agents: tuple[AgentChange, ...] = ()
    """Changes to agents, in order of application."""
    plugin_agents: tuple[AgentChange, ...] = ()
    """Changes by plugins, which any configuration overrides."""
    commands: tuple[tuple[str, CommandEntry], ...] = ()
    """In order of application; the last of a name wins."""
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict[str, ProviderEntry])
    user_providers: Mapping[str, ProviderEntry] = field(default_factory=dict[str, ProviderEntry])
    """Providers of the user's own documents only; they decide where keys may be sent."""
    policies: tuple[tuple[Policy, ...], ...] = ()
    """Statements of each layer in order of application; the last that matches wins, and the
    strictest layer."""
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
    mcp: McpSettings = field(default_factory=McpSettings)
    """MCP servers whose tools are offered."""
    timezone: str | None = None
    """IANA name; None means the zone of this machine."""
    granted_keys: tuple[KeyRequest, ...] = ()
    """Keys that may be sent to addresses of project documents which a person trusts."""
    ungranted: tuple[TrustRequest, ...] = ()
    """Requests of project documents that a person has not granted."""
    problems: tuple[Problem, ...] = ()
    documents: tuple[Document, ...] = ()
    """The merged documents, in order of increasing precedence; also what does not count."""

    @property
    def is_trusted(self) -> bool:
        """Whether everything in the documents counts that a person can grant."""
        return not self.ungranted


_LAYERS: Final[tuple[Layer, ...]] = ("managed", "user", "project")


def merge(found: Sequence[Document]) -> Settings:
    """Merge documents, given in order of increasing precedence."""
    documents = tuple(map(project_keys.counted, found))
    users = _providers(document.providers for document in documents if document.trust == "user")
    checked = [provider_moves.without_moves(document, users) for document in documents]
    users_own = [document for document in documents if document.trust == "user"]
    servers = mcp_servers.configured_servers(found)
    drops: list[DropPolicy | None] = [document.dropped_answers for document in users_own]
    return Settings(
        model=_last(document.model for document in documents),
        default_agent=_last(document.default_agent for document in documents),
        shell=_last(document.shell for document in users_own),
        shell_variables=_shell_variables(documents),
        sandbox=_sandbox(users_own),
        permissions=_permissions(documents),
        agents=_agents(documents, of_plugins=False),
        plugin_agents=_agents(documents, of_plugins=True),
        commands=tuple(command for document in documents for command in document.commands),
        providers=_typed(_providers(providers for providers, _ in checked)),
        user_providers=_typed(users),
        policies=_policies(documents),
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
        mcp=servers,
        timezone=_last(document.timezone for document in documents),
        granted_keys=tuple(
            request
            for document in documents
            if document.granted
            for request in trust.key_requests(document)
        ),
        ungranted=trust.list_ungranted(found),
        problems=(
            *(problem for document in documents for problem in document.problems),
            *(problem for _, problems in checked for problem in problems),
            *servers.problems,
            *(problem for document in found for problem in _user_only_problems(document)),
        ),
        documents=tuple(found),
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
    if project_keys.is_refused(document, at):
        return True
    match at:
        case ("providers", str(provider), *below) if below and provider in users:
            return not provider_moves.may_set(document, provider, tuple(below))
        case _:
            return False


def _last(values: Iterable[codec.T | None]) -> codec.T | None:
    return next((value for value in reversed(tuple(values)) if value is not None), None)


def _sandbox(users_own: Sequence[Document]) -> SandboxSettings:
    managed = [document.sandbox for document in users_own if document.layer == "managed"]
    users = (document.sandbox for document in users_own if document.layer != "managed")
    return sandbox_settings.merge(users, managed)


def _permissions(documents: Sequence[Document]) -> RuleLayers:
    rules = RuleLayers()
    for document in documents:
        rules = rules.add(document.layer, document.permissions)
    return rules


def _policies(documents: Sequence[Document]) -> tuple[tuple[Policy, ...], ...]:
    # Within a layer the nearest document is overridden by those above it.
    found = (
        tuple(
            policy
            for document in reversed(documents)
            if document.layer == layer
            for policy in document.policies
        )
        for layer in _LAYERS
    )
    return tuple(filter(None, found))


def _agents(documents: Sequence[Document], *, of_plugins: bool) -> tuple[AgentChange, ...]:
    return tuple(
        AgentChange(name, entry, document.layer)
        for document in documents
        if document.plugin is of_plugins
        for name, entry in document.agents
    )


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
    values: dict[Layer, JsonObject] = {layer: {} for layer in _LAYERS}
    for document in documents:
        values[document.layer] |= document.budget
    budget = NO_BUDGET
    for each in values.values():
        budget = budget.combine(Budget.from_settings(codec.convert(BudgetEntry, each)))
    return budget


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
            f"`{format_address(key.at)}` can only be set in your own configuration",
            at=key.at,
        )
        for key in project_keys.USER_ONLY
        if key.field is not None and getattr(document, key.field)
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
