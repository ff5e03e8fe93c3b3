"""Which secret is sent to a provider, and to which addresses it may be sent.

A stored credential goes to the origins it was saved for. A key written beside an address belongs to
it. A key in an environment variable has no address, so it goes only to the known origins of that
variable (core.models.known_providers), or to one that the user's own configuration pairs it with.
A project that pairs a variable with its own server gets nothing, unless a person trusts it
(core.settings.trust). core.settings.settings prevents redirecting a user's provider.

Invariant: no function here returns a text that contains a secret, except `Key.value`.
"""

from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlsplit

from msgspec import UNSET

from perdure.core import limits
from perdure.core.config_file.entries import ModelEntry, ProviderEntry
from perdure.lazy_pattern import lazy_pattern
from perdure.net import host_name
from perdure.schema.codec import JsonObject, JsonValue
from perdure.schema.models.credential import StoredCredential, StoredKey, StoredLogin
from perdure.schema.value import Confidential, Value

_DEFAULT_PORTS: Final = {"http": 80, "https": 443}
_UNSENDABLE: Final = lazy_pattern(r"[^\x21-\x7e]")
_SHOWN_ORIGINS_MAX: Final = 3


class Key(Confidential):
    value: str


class Login(Confidential):
    """A token that is renewed when it expires, so it is fetched when a request is sent."""

    stored: StoredLogin


class NoKeyNeeded(Value):
    pass


class KeyMissing(Value):
    reason: str


class StoreUnreadable(Value):
    """Stored credentials cannot be read; the reason names the file and the remedy."""

    reason: str


KeyLookup = Key | Login | NoKeyNeeded | KeyMissing
Stored = StoredCredential | StoreUnreadable | None


def find_key(
    *,
    api_key: str | None,
    api_settings: JsonObject,
    names: tuple[str, ...],
    url: str | None,
    variables: Mapping[str, str],
    origins: Mapping[str, frozenset[str]],
    stored: Stored = None,
    optional: bool = False,
) -> KeyLookup:
    """The key of a request: stored, from the configuration, or from a variable.

    `origins`: where each variable may be sent. `optional`: no key is needed.
    """
    origin = origin_of(url)
    kept = _stored_key(stored, origin)
    if isinstance(kept, Key | Login):
        return kept
    for configured in (api_key, api_settings.get("apiKey")):
        if isinstance(configured, str) and configured:
            return Key(configured)
    present = [name for name in names if variables.get(name)]
    for name in present:
        if origin is not None and may_send(name, origin, origins):
            return Key(variables[name])
    if kept is not None and not isinstance(stored, StoreUnreadable):
        return kept
    if optional or not names:
        return NoKeyNeeded()
    if kept is not None:
        return kept
    if present:
        where = origin or "an unknown address"
        return KeyMissing(
            f"{present[0]} is set, but only your own configuration or a project that you trust"
            f" (`perdure trust`) may send it to {where}"
        )
    return KeyMissing(f"no key: set {' or '.join(names)}")


def key_fault(text: str) -> str | None:
    """Why `text` cannot be a key; never quotes it."""
    if not text:
        return "it is empty"
    if len(text) > limits.CREDENTIAL_CHARS_MAX:
        return f"it is longer than {limits.CREDENTIAL_CHARS_MAX} characters"
    if _UNSENDABLE.search(text):
        return "it contains a space, a line break, or another character that no key has"
    return None


def may_send(name: str, origin: str, origins: Mapping[str, frozenset[str]]) -> bool:
    """Whether the variable `name` may be sent to `origin`."""
    return origin in origins.get(name, ())


def user_origins(
    providers: Mapping[str, ProviderEntry],
    keys: Callable[[str], tuple[str, ...]] = lambda provider_id: (),
) -> dict[str, frozenset[str]]:
    """Variable name -> the origins that these entries of the user's configuration pair it with.

    `keys` returns the known variables of a provider whose entry names none.
    """
    pairs: dict[str, frozenset[str]] = {}
    for provider_id, entry in providers.items():
        origins = frozenset(entry_origins(entry))
        for name in keys(provider_id) if entry.env is UNSET else entry.env:
            pairs[name] = pairs.get(name, frozenset()) | origins
    return pairs


def origin_of(url: str | None) -> str | None:
    """The normalised `scheme://host[:port]` of an http(s) address; None for anything else."""
    try:
        parts = urlsplit(url or "")
        port, name = parts.port, host_name.to_ascii(parts.hostname or "")
    except ValueError:
        return None
    if parts.scheme not in _DEFAULT_PORTS or not name:
        return None
    host = f"[{name}]" if ":" in name else name
    plain = port is None or port == _DEFAULT_PORTS[parts.scheme]
    return f"{parts.scheme}://{host}" if plain else f"{parts.scheme}://{host}:{port}"


def public_url(url: str | None) -> str | None:
    """An address without credentials, query and fragment; None if it is not an http(s) address."""
    origin = origin_of(url)
    return None if origin is None else origin + urlsplit(url or "").path


def address(*, body: JsonObject, url: str | None, api_settings: JsonObject) -> str | None:
    """The URL of a request. `baseURL` is accepted in both places that are in use."""
    candidates: tuple[JsonValue, ...] = (body.get("baseURL"), url, api_settings.get("baseURL"))
    return next((c for c in candidates if isinstance(c, str) and c), None)


def own_address(entry: ProviderEntry | ModelEntry) -> str | None:
    """The address that an entry itself sets."""
    api, request = entry.api, entry.request
    return address(
        body=(request.body or {}) if request else {},
        url=(api.url or None) if api else None,
        api_settings=(api.settings or {}) if api else {},
    )


def own_key(entry: ProviderEntry | ModelEntry) -> str | None:
    """The key that an entry itself holds."""
    body = (entry.request.body or {}) if entry.request else {}
    api_settings = (entry.api.settings or {}) if entry.api else {}
    written: tuple[JsonValue, ...] = (body.get("apiKey"), api_settings.get("apiKey"))
    return next((key for key in written if isinstance(key, str) and key), None)


def entry_origins(entry: ProviderEntry) -> list[str]:
    """The origins that a provider's entry sets for itself and its models."""
    found: list[str] = []
    for part in (entry, *(entry.models or {}).values()):
        origin = origin_of(own_address(part))
        if origin is not None:
            found.append(origin)
    return found


def _stored_key(stored: Stored, origin: str | None) -> Key | Login | KeyMissing | None:
    """The stored key if it may be sent to `origin`, else why not; None if nothing is stored."""
    if stored is None:
        return None
    if isinstance(stored, StoreUnreadable):
        return KeyMissing(stored.reason)
    if origin not in stored.origins:
        allowed = ", ".join(stored.origins[:_SHOWN_ORIGINS_MAX]) or "no address"
        return KeyMissing(
            f"the stored credential is for {allowed} and is not sent to {origin or 'anywhere else'}"
        )
    if isinstance(stored, StoredKey):
        return Key(stored.key)
    if stored.lost is not UNSET:
        return KeyMissing(f"the login can no longer be used: {stored.lost}; log in again")
    return Login(stored)
