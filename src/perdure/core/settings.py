"""Settings: what the configuration documents of a Location add up to, the nearest on top.

A project's documents may set rules, agents, models, and providers with their addresses. They may
not choose the shell, which would be a program of theirs; they may not send a provider that the
user's own documents define to another address, since the user's key would follow it there; they
cannot lift a policy of the user's; and no key names a directory of ours.

Invariant: merging never fails; what it leaves out stands in `problems`.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import field

from perdure.core import jsonc, limits
from perdure.core.config_document import Document, Problem
from perdure.core.config_entry import AgentEntry, OutputEntry, Policy, ProviderEntry
from perdure.core.tool_output import OutputLimits
from perdure.schema import codec
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.model import ModelRef
from perdure.schema.permission import Ruleset
from perdure.schema.value import Value


class Settings(Value, kw_only=True):
    """The configuration in force at one Location."""

    model: ModelRef | None = None
    default_agent: str | None = None
    shell: str | None = None
    permissions: Ruleset = ()
    agents: tuple[tuple[str, AgentEntry], ...] = ()
    """Changes to agents by name, in the order in which they apply."""
    providers: Mapping[str, ProviderEntry] = field(default_factory=dict[str, ProviderEntry])
    user_providers: Mapping[str, ProviderEntry] = field(default_factory=dict[str, ProviderEntry])
    """What the user's own documents alone say: the authority on where a key may be sent."""
    policies: tuple[Policy, ...] = ()
    """Statements in the order in which they apply; the last that matches wins."""
    tool_output: OutputLimits = field(default_factory=OutputLimits)
    problems: tuple[Problem, ...] = ()


NOTHING_CONFIGURED: Final = Settings()


def merge(documents: Sequence[Document]) -> Settings:
    """Lay `documents` over each other, the first lowest."""
    users = _providers(document.providers for document in documents if document.trust == "user")
    checked = [_kept_in_place(document, users) for document in documents]
    return Settings(
        model=_last(document.model for document in documents),
        default_agent=_last(document.default_agent for document in documents),
        shell=_last(document.shell for document in documents if document.trust == "user"),
        permissions=tuple(rule for document in documents for rule in document.permissions),
        agents=tuple(change for document in documents for change in document.agents),
        providers=_typed(_providers(providers for providers, _ in checked)),
        user_providers=_typed(users),
        # Reversed: a lower layer has the last word, so that no project lifts a user's denial.
        policies=tuple(policy for document in reversed(documents) for policy in document.policies),
        tool_output=_output_limits(documents),
        problems=(
            *(problem for document in documents for problem in document.problems),
            *(problem for _, problems in checked for problem in problems),
            *(
                Problem(document.path, "`shell` can only be set in your own configuration")
                for document in documents
                if document.shell and document.trust == "project"
            ),
        ),
    )


def overlay(lower: JsonObject, upper: JsonObject) -> JsonObject:
    """Objects merge key by key; everything else is replaced."""
    result = dict(lower)
    for key, value in upper.items():
        below: JsonValue = result.get(key)
        merges = jsonc.is_object(below) and jsonc.is_object(value)
        result[key] = overlay(below, value) if merges else value
    return result


def _last(values: Iterable[codec.T | None]) -> codec.T | None:
    return next((value for value in reversed(tuple(values)) if value is not None), None)


def _output_limits(documents: Sequence[Document]) -> OutputLimits:
    merged: JsonObject = {}
    for document in documents:
        merged |= document.output
    entry = codec.convert(OutputEntry, merged)
    return OutputLimits(
        lines_max=entry.max_lines or limits.TOOL_OUTPUT_LINES_MAX,
        bytes_max=entry.max_bytes or limits.TOOL_OUTPUT_BYTES_MAX,
    )


def _providers(layers: Iterable[Mapping[str, JsonObject]]) -> dict[str, JsonObject]:
    merged: dict[str, JsonObject] = {}
    for layer in layers:
        for name, entry in layer.items():
            merged[name] = overlay(merged.get(name, {}), entry)
    return merged


def _typed(providers: Mapping[str, JsonObject]) -> dict[str, ProviderEntry]:
    return {name: codec.convert(ProviderEntry, entry) for name, entry in providers.items()}


def _kept_in_place(
    document: Document, users: Mapping[str, JsonObject]
) -> tuple[Mapping[str, JsonObject], tuple[Problem, ...]]:
    """The providers of a document, without new addresses for those that are the user's."""
    if document.trust == "user":
        return document.providers, ()
    kept: dict[str, JsonObject] = {}
    problems: list[Problem] = []
    for name, entry in document.providers.items():
        kept[name] = _without_address(entry) if name in users else entry
        if kept[name] != entry:
            message = (
                f"`providers.{name}` is defined in your own configuration; "
                "a project cannot change its address or protocol"
            )
            problems.append(Problem(document.path, message))
    return kept, tuple(problems)


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
