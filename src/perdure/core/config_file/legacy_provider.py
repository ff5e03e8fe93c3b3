"""Providers and models in the older spelling of the configuration; see core.config_file.legacy.

Only keys that are present are passed on: another document may contain the rest of a provider.
"""

import datetime
from typing import Final

from perdure.core.text import jsonc
from perdure.schema.codec import JsonObject, JsonValue

_PROVIDER_PLAIN: Final = ("name", "env", "disabled", "whitelist", "blacklist")
_MODEL_PLAIN: Final = ("name", "family", "limit", "disabled", "status")


def modern_provider(raw: JsonObject) -> JsonObject:
    """A provider of the older form in the current one."""
    options = _object(raw.get("options"))
    settings = {k: v for k, v in options.items() if k not in ("baseURL", "headers")}
    result: JsonObject = {key: raw[key] for key in _PROVIDER_PLAIN if key in raw}
    api = _api(raw.get("npm"), options.get("baseURL") or raw.get("api"))
    if settings:
        api["settings"] = settings
    if api:
        result["api"] = api
    if "headers" in options:
        result["request"] = {"headers": options["headers"]}
    models = _object(raw.get("models"))
    if models:
        result["models"] = {name: _model(model) for name, model in models.items()}
    return result


def body(options: JsonObject) -> JsonObject:
    """Request options with the names that providers use."""
    effort = options.get("reasoningEffort")
    rest = {key: value for key, value in options.items() if key != "reasoningEffort"}
    return rest if effort is None else {**rest, "reasoning_effort": effort}


def _api(package: JsonValue, url: JsonValue) -> JsonObject:
    """The `api` entry with the keys that are present."""
    named = {} if package is None else {"type": "aisdk", "package": package}
    return {**named, **({"url": url} if url else {})}


def _model(entry: JsonValue) -> JsonValue:
    if not jsonc.is_object(entry):
        return entry
    raw = entry
    result: JsonObject = {key: raw[key] for key in _MODEL_PLAIN if key in raw}
    reached = _object(raw.get("provider"))
    api = _api(reached.get("npm"), reached.get("api"))
    if "id" in raw:
        api["id"] = raw["id"]
    modalities = _object(raw.get("modalities"))
    if "tool_call" in raw:
        modalities = {"tools": raw["tool_call"], **modalities}
    request = {"headers": raw.get("headers"), "body": body(_object(raw.get("options")))}
    released = _released(raw.get("release_date"))
    changed: JsonObject = {
        "api": api,
        "capabilities": modalities,
        "request": {key: value for key, value in request.items() if value},
        "variants": _variants(_object(raw.get("variants"))),
        "cost": _cost(_object(raw.get("cost"))) if "cost" in raw else None,
        "time": None if released is None else {"released": released},
        "disabled": True if raw.get("status") == "deprecated" else None,
    }
    return result | {key: value for key, value in changed.items() if value}


def _variants(variants: JsonObject) -> list[JsonObject]:
    return [_variant(name, _object(options)) for name, options in variants.items()]


def _variant(name: str, options: JsonObject) -> JsonObject:
    added = {key: value for key, value in options.items() if key != "disabled"}
    switch = {"disabled": options["disabled"]} if "disabled" in options else {}
    return {"id": name, "body": body(added), **switch}


def _cost(cost: JsonObject) -> list[JsonObject]:
    above = _object(cost.get("context_over_200k"))
    large = [{**above, "tier": {"type": "context", "size": 200_000}}] if above else []
    tiers = [tier for tier in _list(cost.get("tiers")) if jsonc.is_object(tier)] or large
    return [_price(cost), *({**_price(tier), "tier": tier.get("tier")} for tier in tiers)]


def _price(cost: JsonObject) -> JsonObject:
    cache = {"read": cost.get("cache_read", 0), "write": cost.get("cache_write", 0)}
    return {"input": cost.get("input", 0), "output": cost.get("output", 0), "cache": cache}


def _released(date: JsonValue) -> int | None:
    """The first millisecond (UTC) of an ISO date; None if it is not one."""
    if not isinstance(date, str):
        return None
    try:
        day = datetime.date.fromisoformat(date)
    except ValueError:
        return None
    return (day - datetime.date(1970, 1, 1)).days * 86_400_000


def _list(value: JsonValue) -> list[JsonValue]:
    return value if jsonc.is_list(value) else []


def _object(value: JsonValue) -> JsonObject:
    return value if jsonc.is_object(value) else {}
