"""Older spellings of the configuration, rewritten into the current ones before anything else.

Only the shape changes: `provider` maps become `providers`, permission maps and tool switches
become ordered rules, `agent` and `mode` become `agents`. A current key beside its older form wins.
Values are not validated here; what cannot be understood is passed on for the reader to report.

Invariant: a document in the current form comes back equal.
"""

import datetime
from typing import Final

from perdure.core import jsonc
from perdure.schema.codec import JsonObject, JsonValue

_AGENT_KEYS: Final = {"prompt": "system", "disable": "disabled", "maxSteps": "steps"}
_EDIT_TOOLS: Final = frozenset({"write", "edit", "patch", "multiedit", "apply_patch"})
_PROVIDER_PLAIN: Final = ("name", "env", "disabled")
_MODEL_PLAIN: Final = ("name", "family", "limit", "disabled", "status")
_COMPATIBLE: Final = "@ai-sdk/openai-compatible"


def modernize(raw: JsonObject) -> JsonObject:
    """`raw` in the current form. The argument is not changed."""
    result = {key: value for key, value in raw.items() if key not in ("permission", "tools")}
    rules = _rules(raw)
    if rules is not None:
        result["permissions"] = rules
    agents = _agents(raw)
    if agents:
        result["agents"] = agents
    legacy = _object(raw.get("provider"))
    if legacy:
        migrated = {name: _provider(entry) for name, entry in legacy.items()}
        result["providers"] = {**migrated, **_object(raw.get("providers"))}
    statements = _provider_lists(raw)
    if statements:
        experimental = _object(raw.get("experimental"))
        stated = _list(experimental.get("policies"))
        result["experimental"] = {**experimental, "policies": [*statements, *stated]}
    return result


def _rules(raw: JsonObject) -> JsonValue:
    """The rules of a document or an agent as one list; None when it has none of them."""
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


def _agents(raw: JsonObject) -> JsonObject:
    modes = {name: _primary(entry) for name, entry in _object(raw.get("mode")).items()}
    merged = {**modes, **_object(raw.get("agent")), **_object(raw.get("agents"))}
    return {name: _agent(entry) for name, entry in merged.items()}


def _primary(entry: JsonValue) -> JsonValue:
    return {"mode": "primary", **entry} if jsonc.is_object(entry) else entry


def _agent(entry: JsonValue) -> JsonValue:
    if not jsonc.is_object(entry):
        return entry
    raw = entry
    rules = _rules(raw)
    renamed = {_AGENT_KEYS[key]: value for key, value in raw.items() if key in _AGENT_KEYS}
    kept = {key: value for key, value in raw.items() if key not in _AGENT_KEYS}
    return {**renamed, **kept, **({} if rules is None else {"permissions": rules})}


def _provider(entry: JsonValue) -> JsonValue:
    if not jsonc.is_object(entry):
        return entry
    raw = entry
    options = _object(raw.get("options"))
    settings = {k: v for k, v in options.items() if k not in ("baseURL", "headers")}
    url = options.get("baseURL") or raw.get("api")
    api: JsonObject = {"type": "aisdk", "package": raw.get("npm", _COMPATIBLE)}
    result: JsonObject = {key: raw[key] for key in _PROVIDER_PLAIN if key in raw}
    result["api"] = {**api, **({"url": url} if url else {}), "settings": settings}
    if "headers" in options:
        result["request"] = {"headers": options["headers"]}
    models = _object(raw.get("models"))
    result["models"] = {name: _model(model) for name, model in models.items()}
    return result


def _model(entry: JsonValue) -> JsonValue:
    if not jsonc.is_object(entry):
        return entry
    raw = entry
    result: JsonObject = {key: raw[key] for key in _MODEL_PLAIN if key in raw}
    if "id" in raw:
        result["api"] = {"id": raw["id"]}
    modalities = _object(raw.get("modalities"))
    result["capabilities"] = {"tools": raw.get("tool_call", True), **modalities}
    result["request"] = {
        "headers": raw.get("headers", {}),
        "body": _body(_object(raw.get("options"))),
    }
    result["variants"] = [
        {"id": name, "body": _body(_object(options))}
        for name, options in _object(raw.get("variants")).items()
    ]
    if "cost" in raw:
        result["cost"] = _cost(_object(raw["cost"]))
    released = _released(raw.get("release_date"))
    if released is not None:
        result["time"] = {"released": released}
    return result


def _body(options: JsonObject) -> JsonObject:
    effort = options.get("reasoningEffort")
    rest = {key: value for key, value in options.items() if key != "reasoningEffort"}
    return rest if effort is None else {**rest, "reasoning_effort": effort}


def _cost(cost: JsonObject) -> list[JsonObject]:
    tiers = [_price(cost)]
    above = _object(cost.get("context_over_200k"))
    if above:
        tiers.append({**_price(above), "tier": {"type": "context", "size": 200_000}})
    return tiers


def _price(cost: JsonObject) -> JsonObject:
    cache = {"read": cost.get("cache_read", 0), "write": cost.get("cache_write", 0)}
    return {"input": cost.get("input", 0), "output": cost.get("output", 0), "cache": cache}


def _released(date: JsonValue) -> int | None:
    """The first millisecond (UTC) of an ISO date; what is not one is left out."""
    if not isinstance(date, str):
        return None
    try:
        day = datetime.date.fromisoformat(date)
    except ValueError:
        return None
    return (day - datetime.date(1970, 1, 1)).days * 86_400_000


def _provider_lists(raw: JsonObject) -> list[JsonObject]:
    """`enabled_providers` and `disabled_providers` as policy statements."""
    enabled = [name for name in _list(raw.get("enabled_providers")) if isinstance(name, str)]
    disabled = [name for name in _list(raw.get("disabled_providers")) if isinstance(name, str)]
    statements = [_use("deny", "*")] if enabled else []
    statements += (_use("allow", name) for name in enabled)
    return statements + [_use("deny", name) for name in disabled]


def _use(effect: str, provider: str) -> JsonObject:
    return {"effect": effect, "action": "provider.use", "resource": provider}


def _object(value: JsonValue) -> JsonObject:
    return value if jsonc.is_object(value) else {}


def _list(value: JsonValue) -> list[JsonValue]:
    return value if jsonc.is_list(value) else []
