"""Rewrites older spellings of the configuration to the current ones, before anything else.

Only the shape changes: `provider` maps become `providers`, permission maps and tool switches
become ordered rules, `agent` and `mode` become `agents`, and so on for every renamed or reshaped
key. A current key wins over its older form. Values are not validated here; those that do not fit
are passed on and reported later.

Invariant: a document in the current form comes back equal.
"""

from collections.abc import Callable, Mapping
from typing import Final

from perdure.core.config_file import legacy_provider
from perdure.core.text import jsonc
from perdure.schema.codec import JsonObject, JsonValue

OLDER_NAMES: Final[Mapping[str, tuple[str, ...]]] = {
    "agents": ("agent", "mode"),
    "attachments": ("attachment",),
    "buffer": ("reserved",),
    "commands": ("command",),
    "disabled": ("disable", "enabled"),
    "keep": ("preserve_recent_tokens",),
    "permissions": ("permission", "tools"),
    "plugins": ("plugin",),
    "policies": ("enabled_providers", "disabled_providers"),
    "providers": ("provider",),
    "references": ("reference",),
    "share": ("autoshare",),
    "snapshots": ("snapshot",),
    "steps": ("maxSteps",),
    "system": ("prompt",),
}
"""Current name -> older names of the key."""

AGENT_KEYS: Final = frozenset(
    {
        "budget",
        "color",
        "description",
        "disabled",
        "hidden",
        "mode",
        "model",
        "permissions",
        "request",
        "steps",
        "system",
        "variant",
    }
)
"""The keys of an agent. An agent with any other key has the older form."""

_RENAMED: Final = {
    "attachment": "attachments",
    "command": "commands",
    "reference": "references",
    "snapshot": "snapshots",
}
_REPLACED: Final = frozenset(
    {
        *_RENAMED,
        "agent",
        "autoshare",
        "disabled_providers",
        "enabled_providers",
        "mode",
        "permission",
        "plugin",
        "provider",
        "tools",
    }
)
_AGENT_RENAMED: Final = {"prompt": "system", "disable": "disabled", "maxSteps": "steps"}
_AGENT_REPLACED: Final = frozenset({*_AGENT_RENAMED, "name", "options", "permission", "tools"})
_OAUTH_RENAMED: Final = {
    "clientId": "client_id",
    "clientSecret": "client_secret",
    "callbackPort": "callback_port",
    "redirectUri": "redirect_uri",
}
_MCP_KEYS: Final = frozenset({"timeout", "servers"})
_MCP_TYPES: Final = frozenset({"local", "remote"})
_EDIT_TOOLS: Final = frozenset({"write", "edit", "patch", "multiedit", "apply_patch"})


def modernize(raw: JsonObject) -> JsonObject:
    """`raw` in the current form. The argument is not changed."""
    result = {key: value for key, value in raw.items() if key not in _REPLACED}
    result |= {new: raw[old] for old, new in _RENAMED.items() if old in raw and new not in result}
    changed: JsonObject = {
        "permissions": _rules(raw),
        "agents": _agents(raw),
        "providers": _providers(raw),
        "experimental": _experimental(raw),
        "compaction": _compaction(raw.get("compaction")),
        "mcp": _mcp(raw),
        "skills": _skills(raw.get("skills")),
        "plugins": _plugins(raw),
        "share": raw.get("share", "auto" if raw.get("autoshare") is True else None),
    }
    return result | {key: value for key, value in changed.items() if value is not None}


def modern_agent(raw: JsonObject) -> JsonObject:
    """An agent of the older form in the current one. Unknown keys become provider options."""
    options = {
        key: value
        for key, value in raw.items()
        if key not in AGENT_KEYS and key not in _AGENT_REPLACED
    }
    body = legacy_provider.body({**_object(raw.get("options")), **options})
    entry = {key: value for key, value in _agent(raw).items() if key in AGENT_KEYS}
    if not body:
        return entry
    request = _object(entry.get("request"))
    return {**entry, "request": {**request, "body": {**body, **_object(request.get("body"))}}}


def _rules(raw: JsonObject) -> JsonValue:
    """The rules of a document or an agent as one list; None if it has none."""
    if not raw.keys() & {"permissions", "permission", "tools"}:
        return None
    current: JsonValue = raw.get("permissions", [])
    rules = [*_tool_switches(_object(raw.get("tools"))), *_map_rules(raw.get("permission"))]
    if jsonc.is_list(current):
        return [*rules, *current]
    if jsonc.is_object(current) or isinstance(current, str):
        return [*rules, *_map_rules(current)]
    return current


def _map_rules(value: JsonValue) -> list[JsonValue]:
    """`"ask"`, `{"edit": "deny"}` or `{"bash": {"git *": "allow"}}`, in the order of the keys."""
    if isinstance(value, str):
        return [_rule("*", "*", value)]
    rules: list[JsonValue] = []
    for action, effect in _object(value).items():
        if jsonc.is_object(effect):
            rules += (_rule(action, resource, effect[resource]) for resource in effect)
        else:
            rules.append(_rule(action, "*", effect))
    return rules


def _tool_switches(tools: JsonObject) -> list[JsonValue]:
    return [
        _rule("edit" if name in _EDIT_TOOLS else name, "*", "allow" if enabled else "deny")
        for name, enabled in tools.items()
        if isinstance(enabled, bool)
    ]


def _rule(action: str, resource: str, effect: JsonValue) -> JsonObject:
    return {"action": action, "resource": resource, "effect": effect}


def _agents(raw: JsonObject) -> JsonValue:
    older: JsonValue = raw.get("agent", {})
    modes: JsonValue = raw.get("mode", {})
    current: JsonValue = raw.get("agents", {})
    for given in (current, older, modes):
        if not jsonc.is_object(given):
            return given
    modes = {name: _primary(entry) for name, entry in modes.items()}
    return {**_each(modern_agent, {**modes, **older}), **_each(_agent, current)} or None


def _each(change: Callable[[JsonObject], JsonObject], entries: JsonObject) -> JsonObject:
    """`entries` with `change` applied to those that are objects."""
    return {name: change(e) if jsonc.is_object(e) else e for name, e in entries.items()}


def _primary(entry: JsonValue) -> JsonValue:
    return {**entry, "mode": "primary"} if jsonc.is_object(entry) else entry


def _agent(raw: JsonObject) -> JsonObject:
    rules = _rules(raw)
    renamed = {_AGENT_RENAMED[key]: value for key, value in raw.items() if key in _AGENT_RENAMED}
    kept = {key: value for key, value in raw.items() if key not in _AGENT_RENAMED}
    return {**renamed, **kept, **({} if rules is None else {"permissions": rules})}


def _providers(raw: JsonObject) -> JsonValue:
    older: JsonValue = raw.get("provider", {})
    current: JsonValue = raw.get("providers", {})
    if not jsonc.is_object(older) or not jsonc.is_object(current):
        return current if jsonc.is_object(older) else older
    return {**_each(legacy_provider.modern_provider, older), **current} or None


def _experimental(raw: JsonObject) -> JsonObject | None:
    statements = _provider_lists(raw)
    if not statements:
        return None
    experimental = _object(raw.get("experimental"))
    stated = _list(experimental.get("policies"))
    return {**experimental, "policies": [*statements, *stated]}


def _provider_lists(raw: JsonObject) -> list[JsonObject]:
    """`enabled_providers` and `disabled_providers` as policy statements."""
    enabled = [name for name in _list(raw.get("enabled_providers")) if isinstance(name, str)]
    disabled = [name for name in _list(raw.get("disabled_providers")) if isinstance(name, str)]
    statements = [_use("deny", "*")] if enabled else []
    statements += (_use("allow", name) for name in enabled)
    return statements + [_use("deny", name) for name in disabled]


def _use(effect: str, provider: str) -> JsonObject:
    return {"effect": effect, "action": "provider.use", "resource": provider}


def _compaction(value: JsonValue) -> JsonValue:
    older = _object(value)
    if not older.keys() & {"reserved", "preserve_recent_tokens"}:
        return None
    result = {k: v for k, v in older.items() if k not in ("reserved", "preserve_recent_tokens")}
    if "reserved" in older:
        result.setdefault("buffer", older["reserved"])
    if "preserve_recent_tokens" in older:
        result.setdefault("keep", {"tokens": older["preserve_recent_tokens"]})
    return result


def _mcp(raw: JsonObject) -> JsonValue:
    """Move servers from directly under `mcp`, and the timeout from `experimental`."""
    value: JsonObject = _object(raw.get("mcp"))
    timeout = _object(raw.get("experimental")).get("mcp_timeout")
    older = {name: entry for name, entry in value.items() if _is_mcp_server(name, entry)}
    if not older and timeout is None:
        return None
    result = {key: entry for key, entry in value.items() if key not in older}
    if older:
        current: JsonValue = result.get("servers", {})
        servers = _each(_mcp_server, older)
        result["servers"] = {**servers, **current} if jsonc.is_object(current) else current
    return result if timeout is None else {"timeout": timeout, **result}


def _is_mcp_server(name: str, entry: JsonValue) -> bool:
    """Whether this key of `mcp` is a server of the older form, which may have any name."""
    kind = _object(entry).get("type")
    return name not in _MCP_KEYS or (isinstance(kind, str) and kind in _MCP_TYPES)


def _mcp_server(entry: JsonObject) -> JsonObject:
    result = {key: value for key, value in entry.items() if key != "enabled"}
    if isinstance(entry.get("enabled"), bool):
        result.setdefault("disabled", not entry["enabled"])
    oauth: JsonValue = entry.get("oauth")
    if jsonc.is_object(oauth):
        result["oauth"] = {_OAUTH_RENAMED.get(key, key): oauth[key] for key in oauth}
    return result


def _skills(value: JsonValue) -> JsonValue:
    """`{"paths": [...], "urls": [...]}` as one list."""
    if not jsonc.is_object(value):
        return None
    return [*_list(value.get("paths")), *_list(value.get("urls"))]


def _plugins(raw: JsonObject) -> JsonValue:
    """Convert plugins; one with options was a pair in the older form."""
    older: JsonValue = raw.get("plugin")
    if not jsonc.is_list(older):
        return None
    return [*(_plugin(entry) for entry in older), *_list(raw.get("plugins"))]


def _plugin(entry: JsonValue) -> JsonValue:
    if not jsonc.is_list(entry) or not entry:
        return entry
    return {"package": entry[0], "options": entry[1] if len(entry) > 1 else {}}


def _object(value: JsonValue) -> JsonObject:
    return value if jsonc.is_object(value) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if jsonc.is_list(value) else []
