"""The parts of a configuration document, with the names that the file uses.

Fields that a document may omit are optional, so that several documents can each set some of them.
core.settings.settings and core.models.catalog interpret the entries.
"""

from typing import Annotated, Final, Literal, TypeVar

import msgspec
from msgspec import UNSET, Meta, UnsetType, structs

from perdure.core import limits
from perdure.core.text import jsonc
from perdure.llm.encoding.chat_dialect import ReasoningForm
from perdure.schema.approval.permission import Ruleset
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.integration import LoginPrompt
from perdure.schema.settings.agent import AgentMode

Positive = Annotated[int, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]
Price = Annotated[float, Meta(ge=0)]
Seconds = Annotated[float, Meta(ge=0)]
Wait = Annotated[float, Meta(gt=0, le=limits.RETRY_PATIENCE_SECONDS_MAX)]
Status = Literal["alpha", "beta", "deprecated", "active"]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Base of all parts of a document."""


EntryT = TypeVar("EntryT", bound=Entry)


class RequestEntry(Entry, frozen=True):
    headers: dict[str, str] | UnsetType = UNSET
    body: JsonObject | UnsetType = UNSET
    variant: str | UnsetType = UNSET


class ApiEntry(Entry, frozen=True):
    type: Literal["aisdk", "native"] | UnsetType = UNSET
    package: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    id: str | UnsetType = UNSET
    settings: JsonObject | UnsetType = UNSET


class VariantEntry(Entry, frozen=True):
    id: str
    headers: dict[str, str] | UnsetType = UNSET
    body: JsonObject | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class CapabilitiesEntry(Entry, frozen=True):
    tools: bool | UnsetType = UNSET
    input: tuple[str, ...] | UnsetType = UNSET
    output: tuple[str, ...] | UnsetType = UNSET


class CacheCostEntry(Entry, frozen=True):
    """Prices of what goes through the cache; without one it is that of the input."""

    read: Price | UnsetType = UNSET
    write: Price | UnsetType = UNSET


class TierEntry(Entry, frozen=True):
    size: Count
    type: Literal["context"] = "context"


class CostEntry(Entry, frozen=True):
    input: Price = 0
    output: Price = 0
    cache: CacheCostEntry | UnsetType = UNSET
    tier: TierEntry | UnsetType = UNSET


class LimitEntry(Entry, frozen=True):
    context: Count | UnsetType = UNSET
    output: Count | UnsetType = UNSET
    input: Count | UnsetType = UNSET


class TimeEntry(Entry, frozen=True):
    released: int | UnsetType = UNSET


class DialectEntry(Entry, frozen=True):
    """The differences of a Chat Completions provider's requests; null is the default.

    See llm.encoding.chat_dialect.ChatDialect.
    """

    fields: dict[str, bool | None] | UnsetType = UNSET
    """Wire name of a request field -> whether requests have it."""
    reasoning: ReasoningForm | UnsetType | None = UNSET
    empty_reasoning: bool | UnsetType | None = UNSET
    documents: bool | UnsetType | None = UNSET
    cache_control: bool | UnsetType | None = UNSET
    short_call_ids: bool | UnsetType | None = UNSET


class ModelEntry(Entry, frozen=True):
    name: str | UnsetType = UNSET
    family: str | UnsetType = UNSET
    api: ApiEntry | UnsetType = UNSET
    capabilities: CapabilitiesEntry | UnsetType = UNSET
    request: RequestEntry | UnsetType = UNSET
    variants: tuple[VariantEntry, ...] | UnsetType = UNSET
    cost: tuple[CostEntry, ...] | CostEntry | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    limit: LimitEntry | UnsetType = UNSET
    status: Status | UnsetType = UNSET
    time: TimeEntry | UnsetType = UNSET
    dialect: DialectEntry | UnsetType = UNSET


class TimeoutEntry(Entry, frozen=True):
    """Timeouts of a provider in seconds; 0 means none."""

    connect: Seconds | UnsetType = UNSET
    """To connect."""
    first_byte: Seconds | UnsetType = UNSET
    """From a request to the beginning of its answer."""
    idle: Seconds | UnsetType = UNSET
    """The longest pause within an answer."""
    total: Seconds | UnsetType = UNSET
    """From a request to the end of its answer."""


class ProviderLimitsEntry(Entry, frozen=True):
    """The most that all Sessions may ask of a provider together; core.models.provider_limits."""

    concurrent: Positive | UnsetType = UNSET
    requests_per_minute: Positive | UnsetType = UNSET
    tokens_per_minute: Positive | UnsetType = UNSET


class ProviderEntry(Entry, frozen=True):
    name: str | UnsetType = UNSET
    env: tuple[str, ...] | UnsetType = UNSET
    api: ApiEntry | UnsetType = UNSET
    request: RequestEntry | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    models: dict[str, ModelEntry] | UnsetType = UNSET
    whitelist: tuple[str, ...] | UnsetType = UNSET
    """The only models that may be used."""
    blacklist: tuple[str, ...] | UnsetType = UNSET
    """Models that may not be used."""
    timeout: TimeoutEntry | UnsetType = UNSET
    limits: ProviderLimitsEntry | UnsetType = UNSET
    dialect: DialectEntry | UnsetType = UNSET


class BudgetEntry(Entry, frozen=True):
    """What a Session may spend; see core.session.budget."""

    cost: Annotated[float, Meta(gt=0)] | UnsetType = UNSET
    tokens: Positive | UnsetType = UNSET
    turns: Positive | UnsetType = UNSET


class AgentEntry(Entry, frozen=True):
    model: str | UnsetType = UNSET
    models: Annotated[tuple[str, ...], Meta(max_length=limits.CHAIN_MODELS_MAX)] | UnsetType = UNSET
    """The chain of models: each stands in while those before it cannot answer."""
    variant: str | UnsetType = UNSET
    system: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mode: AgentMode | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET
    color: str | UnsetType = UNSET
    steps: Positive | UnsetType = UNSET
    permissions: Ruleset | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    request: RequestEntry | UnsetType = UNSET
    budget: BudgetEntry | UnsetType = UNSET


class Policy(Entry, frozen=True):
    """Whether providers whose id matches may be used here."""

    effect: Literal["allow", "deny"]
    action: str
    resource: str


class OutputEntry(Entry, frozen=True):
    max_lines: Positive | UnsetType = UNSET
    max_bytes: Positive | UnsetType = UNSET


class KeepEntry(Entry, frozen=True):
    tokens: Count | UnsetType = UNSET


class CompactionEntry(Entry, frozen=True):
    auto: bool | UnsetType = UNSET
    buffer: Count | UnsetType = UNSET
    keep: KeepEntry | UnsetType = UNSET


class CommandEntry(Entry, frozen=True):
    template: str
    description: str | UnsetType = UNSET
    agent: str | UnsetType = UNSET
    model: str | UnsetType = UNSET
    subtask: bool | UnsetType = UNSET


class ImageEntry(Entry, frozen=True):
    auto_resize: bool | UnsetType = UNSET
    max_width: Positive | UnsetType = UNSET
    max_height: Positive | UnsetType = UNSET
    max_base64_bytes: Positive | UnsetType = UNSET


class AttachmentsEntry(Entry, frozen=True):
    image: ImageEntry | UnsetType = UNSET


class WatcherEntry(Entry, frozen=True):
    ignore: tuple[str, ...] | UnsetType = UNSET


class ProgramEntry(Entry, frozen=True):
    """A formatter, a checker or a language server."""

    command: tuple[str, ...] | UnsetType = UNSET
    extensions: tuple[str, ...] | UnsetType = UNSET
    environment: dict[str, str] | UnsetType = UNSET
    env: dict[str, str] | UnsetType = UNSET
    initialization: JsonObject | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class OtherEntry(Entry, frozen=True):
    """Further keys, some only used by other programs; checked so that mistakes are reported."""

    username: str | UnsetType = UNSET
    snapshots: bool | UnsetType = UNSET
    attachments: AttachmentsEntry | UnsetType = UNSET
    watcher: WatcherEntry | UnsetType = UNSET
    formatter: bool | dict[str, ProgramEntry] | UnsetType = UNSET
    lsp: bool | dict[str, ProgramEntry] | UnsetType = UNSET


RecoveryPolicy = Literal["ask", "retry", "abandon"]
"""How a request is treated that may have been sent before a crash (core.session.recovery)."""


DropPolicy = Literal["continue", "restart", "fail"]
"""The treatment of an answer that broke off (core.request.dropped_answer)."""


class ExperimentalEntry(Entry, frozen=True):
    timezone: str | UnsetType = UNSET
    recovery: RecoveryPolicy | UnsetType = UNSET
    dropped_answers: DropPolicy | UnsetType = UNSET
    patience: bool | Wait | UnsetType = UNSET
    """The longest wait of a Session for a provider, in seconds; `true` means a day."""
    mcp_search: Positive | UnsetType = UNSET
    """The number of tools of MCP servers above which they are offered by search."""


class DiagnosticsEntry(Entry, frozen=True):
    diagnostics: dict[str, ProgramEntry] | UnsetType = UNSET


class LoginEntry(Entry, frozen=True):
    """A login method of a provider; see core.credentials.oauth.LoginMethod."""

    token_url: str
    client_id: str
    authorize_url: str | UnsetType = UNSET
    device_url: str | UnsetType = UNSET
    label: str | UnsetType = UNSET
    scopes: tuple[str, ...] = ()
    redirect_url: str | UnsetType = UNSET
    parameters: dict[str, str] | UnsetType = UNSET
    prompts: tuple[LoginPrompt, ...] = ()


class BashEntry(Entry, frozen=True):
    allowed_variables: tuple[str, ...] | UnsetType = UNSET


_HOST_PATTERN: Final = (
    r"^(\*|(\*\.)?[^\s*/@?#:\[\]\\]+|\[[0-9a-fA-F:.]+\]|[0-9a-fA-F:]*:[0-9a-fA-F:.]*:[0-9a-fA-F:.]*)"
    r"(:([0-9]{1,5}|\*))?$"
)
"""A host, `*.` and a host, an address or `*`, and a port or `*` for every port."""


class SandboxNetworkEntry(Entry, frozen=True):
    allow: tuple[Annotated[str, Meta(pattern=_HOST_PATTERN)], ...] | UnsetType = UNSET


class SandboxEntry(Entry, frozen=True):
    mode: Literal["read-only", "workspace-write", "danger-full-access"] | UnsetType = UNSET
    network: bool | SandboxNetworkEntry | UnsetType = UNSET
    writable: tuple[str, ...] | UnsetType = UNSET
    hidden: tuple[str, ...] | UnsetType = UNSET
    ask: bool | UnsetType = UNSET


class WebFetchEntry(Entry, frozen=True):
    allowed_hosts: tuple[str, ...] | UnsetType = UNSET


class WebSearchEntry(Entry, frozen=True):
    provider: Literal["exa", "parallel"] | UnsetType = UNSET
    url: str | UnsetType = UNSET


def merge_entries(lower: EntryT, upper: EntryT) -> EntryT:
    """Merge two entries: `upper` wins field by field, and in maps key by key."""
    values = {name: getattr(upper, name) for name in upper.__struct_fields__}
    changed = {
        name: _merge(getattr(lower, name), value)
        for name, value in values.items()
        if value is not UNSET
    }
    return structs.replace(lower, **changed)


def _merge(lower: JsonValue, upper: JsonValue) -> JsonValue:
    if jsonc.is_object(lower) and jsonc.is_object(upper):
        return _merge_maps(lower, upper)
    match lower, upper:
        case (CostEntry(), _) | (_, CostEntry()):
            return upper
        case Entry(), Entry():
            return merge_entries(lower, upper)
        case (VariantEntry(), *_), (VariantEntry(), *_):
            by_id = {variant.id: variant for variant in lower}
            return tuple(_merge_maps(by_id, {variant.id: variant for variant in upper}).values())
        case _:
            return upper


def _merge_maps(lower: JsonObject, upper: JsonObject) -> JsonObject:
    both = {key: _merge(lower[key], upper[key]) for key in upper if key in lower}
    return {**lower, **upper, **both}
