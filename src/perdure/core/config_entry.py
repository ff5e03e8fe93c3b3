"""The parts of a configuration document, with the names that the file uses.

Every field is optional where a document may leave it out, so that layers can say different things
about one provider, model or agent. What the parts mean together is decided in core.settings and
core.catalog.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, Meta, UnsetType

from perdure.schema.agent import AgentMode
from perdure.schema.codec import JsonObject
from perdure.schema.permission import Ruleset

Positive = Annotated[int, Meta(gt=0)]
Count = Annotated[int, Meta(ge=0)]
Price = Annotated[float, Meta(ge=0)]


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """Part of a document, with the names that the file uses."""


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


class CapabilitiesEntry(Entry, frozen=True):
    tools: bool | UnsetType = UNSET
    input: tuple[str, ...] | UnsetType = UNSET
    output: tuple[str, ...] | UnsetType = UNSET


class CacheCostEntry(Entry, frozen=True):
    read: Price = 0
    write: Price = 0


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
    status: Literal["alpha", "beta", "deprecated", "active"] | UnsetType = UNSET
    time: TimeEntry | UnsetType = UNSET


class ProviderEntry(Entry, frozen=True):
    name: str | UnsetType = UNSET
    env: tuple[str, ...] | UnsetType = UNSET
    api: ApiEntry | UnsetType = UNSET
    request: RequestEntry | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET
    models: dict[str, ModelEntry] | UnsetType = UNSET


class AgentEntry(Entry, frozen=True):
    model: str | UnsetType = UNSET
    variant: str | UnsetType = UNSET
    system: str | UnsetType = UNSET
    description: str | UnsetType = UNSET
    mode: AgentMode | UnsetType = UNSET
    hidden: bool | UnsetType = UNSET
    color: str | UnsetType = UNSET
    steps: Positive | UnsetType = UNSET
    permissions: Ruleset | UnsetType = UNSET
    disabled: bool | UnsetType = UNSET


class Policy(Entry, frozen=True):
    """Whether providers whose id matches may be used here."""

    effect: Literal["allow", "deny"]
    action: str
    resource: str


class OutputEntry(Entry, frozen=True):
    max_lines: Positive | UnsetType = UNSET
    max_bytes: Positive | UnsetType = UNSET
