"""Which secret reaches a provider, and which may not.

A key written beside an address belongs to it. A key of the environment has no address, so it goes
only to an origin that its name is known for, or one that the user's own configuration pairs it
with; a project that names somebody's variable beside its own server gets nothing. Redirecting a
user's provider is prevented in core.settings.

Invariant: no function here returns a text that contains a secret, except `Key.value`.
"""

from collections.abc import Mapping
from typing import Final
from urllib.parse import urlsplit

from perdure.core.config_entry import ProviderEntry
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.value import Confidential, Value

# Variables that everyone uses for one service, and that service's address.
_KNOWN_ORIGINS: Final[Mapping[str, str]] = {
    "ANTHROPIC_API_KEY": "https://api.anthropic.com",
    "CEREBRAS_API_KEY": "https://api.cerebras.ai",
    "DEEPSEEK_API_KEY": "https://api.deepseek.com",
    "FIREWORKS_API_KEY": "https://api.fireworks.ai",
    "GEMINI_API_KEY": "https://generativelanguage.googleapis.com",
    "GOOGLE_GENERATIVE_AI_API_KEY": "https://generativelanguage.googleapis.com",
    "GROQ_API_KEY": "https://api.groq.com",
    "MISTRAL_API_KEY": "https://api.mistral.ai",
    "OPENAI_API_KEY": "https://api.openai.com",
    "OPENROUTER_API_KEY": "https://openrouter.ai",
    "TOGETHER_API_KEY": "https://api.together.xyz",
    "XAI_API_KEY": "https://api.x.ai",
}
_DEFAULT_PORTS: Final = {"http": 80, "https": 443}


class Key(Confidential):
    value: str


class NoKeyNeeded(Value):
    pass


class KeyMissing(Value):
    reason: str


KeyLookup = Key | NoKeyNeeded | KeyMissing


def find_key(
    *,
    body: JsonObject,
    api_settings: JsonObject,
    names: tuple[str, ...],
    url: str | None,
    variables: Mapping[str, str],
    user_origins: Mapping[str, frozenset[str]],
) -> KeyLookup:
    """The key of a request: from its body, its settings, or one of the variables in `names`."""
    for configured in (body.get("apiKey"), api_settings.get("apiKey")):
        if isinstance(configured, str) and configured:
            return Key(configured)
    if not names:
        return NoKeyNeeded()
    origin = origin_of(url)
    present = [name for name in names if variables.get(name)]
    for name in present:
        if origin is not None and belongs(name, origin, user_origins):
            return Key(variables[name])
    if present:
        where = origin or "an unknown address"
        return KeyMissing(
            f"{present[0]} is set, but only your own configuration may send it to {where}"
        )
    return KeyMissing(f"no key: set {' or '.join(names)}")


def belongs(name: str, origin: str, user_origins: Mapping[str, frozenset[str]]) -> bool:
    """Whether the variable `name` may be sent to `origin`."""
    return _KNOWN_ORIGINS.get(name) == origin or origin in user_origins.get(name, ())


def user_origins(providers: Mapping[str, ProviderEntry]) -> dict[str, frozenset[str]]:
    """Variable name -> the origins that these entries, all the user's own, pair it with."""
    pairs: dict[str, frozenset[str]] = {}
    for entry in providers.values():
        origins = frozenset(_origins(entry))
        for name in entry.env or ():
            pairs[name] = pairs.get(name, frozenset()) | origins
    return pairs


def origin_of(url: str | None) -> str | None:
    """`scheme://host[:port]` of an http(s) address, in one spelling; None for anything else."""
    try:
        parts = urlsplit(url or "")
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not parts.hostname:
        return None
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    plain = port is None or port == _DEFAULT_PORTS[parts.scheme]
    return f"{parts.scheme}://{host}" if plain else f"{parts.scheme}://{host}:{port}"


def public_url(url: str | None) -> str | None:
    """An address without credentials, query and fragment; None when it is no http(s) address."""
    origin = origin_of(url)
    return None if origin is None else origin + urlsplit(url or "").path


def address(*, body: JsonObject, url: str | None, api_settings: JsonObject) -> str | None:
    """Where a request goes. `baseURL` is accepted in the two places where people put it."""
    candidates: tuple[JsonValue, ...] = (body.get("baseURL"), url, api_settings.get("baseURL"))
    return next((c for c in candidates if isinstance(c, str) and c), None)


def _origins(entry: ProviderEntry) -> list[str]:
    found: list[str] = []
    for part in (entry, *(entry.models or {}).values()):
        api, request = part.api, part.request
        url = address(
            body=(request.body or {}) if request else {},
            url=(api.url or None) if api else None,
            api_settings=(api.settings or {}) if api else {},
        )
        origin = origin_of(url)
        if origin is not None:
            found.append(origin)
    return found
