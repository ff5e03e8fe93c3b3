"""Addresses of providers in the environment, such as OPENAI_BASE_URL.

They are the user's own words, as if the user's configuration set `api.url`: they come before what
is known of a provider and after every document, and the provider's keys may be sent there.
"""

from collections.abc import Mapping
from typing import Final

from msgspec.structs import replace

from perdure.core.config_file.entries import ApiEntry, ProviderEntry
from perdure.core.credentials import keys
from perdure.core.models.catalog import Known
from perdure.core.settings.settings import Settings
from perdure.schema.value import Value


class _Variable(Value):
    name: str
    path: str = ""
    """What the vendor's library adds to the address by itself."""


# Each from the client library or the reference of its vendor.
_VARIABLES: Final[Mapping[str, _Variable]] = {
    "anthropic": _Variable("ANTHROPIC_BASE_URL", "/v1"),
    "azure": _Variable("AZURE_OPENAI_ENDPOINT", "/openai/v1"),
    "cerebras": _Variable("CEREBRAS_BASE_URL", "/v1"),
    "google": _Variable("GOOGLE_GEMINI_BASE_URL", "/v1beta"),
    "groq": _Variable("GROQ_BASE_URL", "/openai/v1"),
    "openai": _Variable("OPENAI_BASE_URL"),
    "togetherai": _Variable("TOGETHER_BASE_URL"),
}


def with_addresses(
    settings: Settings, variables: Mapping[str, str], known: Known | None
) -> Settings:
    """The settings with the addresses of `variables` for providers that no document moves."""
    providers, users = dict(settings.providers), dict(settings.user_providers)
    for provider_id, variable in _VARIABLES.items():
        given = variables.get(variable.name, "").strip()
        facts = None if known is None or not given else known.entry(provider_id)
        written = providers.get(provider_id) or ProviderEntry()
        if facts is None or keys.own_address(written) is not None:
            continue
        url = _address(given, variable.path)
        # Not from `written`: a project must not choose which key is sent there.
        own = users.get(provider_id) or ProviderEntry()
        providers[provider_id] = _moved(written, url, facts)
        users[provider_id] = _moved(own, url, facts)
    if providers == settings.providers:
        return settings
    return replace(settings, providers=providers, user_providers=users)


def _moved(entry: ProviderEntry, url: str, facts: ProviderEntry) -> ProviderEntry:
    # Its variables are named, so that a key is needed: the address is set for other programs too.
    return replace(entry, api=replace(entry.api or ApiEntry(), url=url), env=entry.env or facts.env)


def _address(given: str, path: str) -> str:
    """The address with the path that the library would add, unless a person wrote it too."""
    plain = given.rstrip("/")
    return plain if not path or plain.endswith(path) else plain + path
