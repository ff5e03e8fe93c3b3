"""The configuration in V1: what is in effect in a directory, without anything secret."""

from collections.abc import Iterable
from typing import Final

from msgspec import UNSET

from perdure.core.config_file.entries import CommandEntry, ProviderEntry
from perdure.core.settings.settings import Settings
from perdure.protocol.v1 import catalog
from perdure.schema import codec
from perdure.schema.approval.permission import Rule
from perdure.schema.codec import JsonObject
from perdure.server.call import Call, Handlers
from perdure.server.v1 import location

_SCHEMA: Final = "https://opencode.ai/config.json"


async def config(call: Call[None, None]) -> JsonObject:
    where = location.resolve(call)
    settings = await call.runtime.locations.settings(where)
    default = (await call.runtime.locations.default_model(where)).model
    shown: JsonObject = {
        "$schema": _SCHEMA,
        "command": {name: _command(entry) for name, entry in settings.commands},
        "agent": _agents(settings),
        "mode": {},
        "plugin": [],
        "provider": {name: _provider(entry) for name, entry in settings.providers.items()},
        "permission": _permissions(settings),
    }
    if default is not UNSET:
        shown["model"] = f"{default.provider_id}/{default.id}"
    if settings.default_agent is not None:
        shown["default_agent"] = settings.default_agent
    if settings.shell is not None:
        shown["shell"] = settings.shell
    if settings.instructions:
        shown["instructions"] = [entry.text for entry in settings.instructions]
    return shown | _after_edit(settings)


async def global_config(call: Call[None, None]) -> JsonObject:
    """The user's own configuration: a request without a project has no more."""
    return {"$schema": _SCHEMA}


def _command(entry: CommandEntry) -> JsonObject:
    return _plain(entry, ("template", "description", "agent", "model", "subtask"))


def _agents(settings: Settings) -> JsonObject:
    shown: dict[str, JsonObject] = {}
    for change in settings.agents:
        found = _plain(change.entry, ("model", "description", "mode"))
        shown[change.name] = {**shown.get(change.name, {}), **found}
    return dict(shown)


def _provider(entry: ProviderEntry) -> JsonObject:
    """Name and models; addresses, headers and keys are left out."""
    models = {} if entry.models is UNSET else entry.models
    shown = _plain(entry, ("name", "env", "whitelist", "blacklist"))
    return {**shown, "models": {name: _plain(model, ("name",)) for name, model in models.items()}}


def _permissions(settings: Settings) -> JsonObject:
    layers = settings.permissions
    shown: dict[str, dict[str, str]] = {}
    for rule in _rules((layers.project, layers.user, layers.managed)):
        shown.setdefault(rule.action, {})[rule.resource] = rule.effect
    return dict(shown)


def _rules(layers: Iterable[tuple[Rule, ...]]) -> Iterable[Rule]:
    return (rule for layer in layers for rule in layer)


def _after_edit(settings: Settings) -> JsonObject:
    programs = settings.after_edit
    shown: JsonObject = {}
    if programs.formatters:
        shown["formatter"] = {
            it.name: {"extensions": list(it.extensions)} for it in programs.formatters
        }
    if programs.servers:
        shown["lsp"] = {
            it.name: {"command": list(it.command[:1]), "extensions": list(it.extensions)}
            for it in programs.servers
        }
    return shown


def _plain(entry: object, names: tuple[str, ...]) -> JsonObject:
    """These fields of an entry, as far as they are set."""
    found = {name: getattr(entry, name, UNSET) for name in names}
    given = {name: value for name, value in found.items() if value is not UNSET}
    return codec.decode_any(codec.encode(given))


HANDLERS: Final[Handlers] = {
    catalog.CONFIG.operation_id: config,
    catalog.GLOBAL_CONFIG.operation_id: global_config,
}
