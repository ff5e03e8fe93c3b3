"""Where keys may be sent: what everybody knows, what the user's documents say, what was granted.

A variable of the environment has no address of its own. It gets those that its name is known for,
those that the user's own configuration pairs it with, and those that a person allowed by trusting a
project's document (core.settings.trust). Choosing a key for a request is core.credentials.keys's
part.
"""

from msgspec.structs import replace

from perdure.core.credentials import keys as credential
from perdure.core.models.known_providers import KnownProviders
from perdure.core.settings.settings import Settings
from perdure.schema.models.credential import StoredCredential


def variable_origins(settings: Settings, known: KnownProviders | None) -> dict[str, frozenset[str]]:
    """Name of a variable -> the origins that it may be sent to."""
    keys = known.keys if known else _no_keys
    homes = dict(known.origins) if known else {}
    for name, theirs in credential.user_origins(settings.user_providers, keys).items():
        homes[name] = homes.get(name, frozenset()) | theirs
    for wish in settings.granted_keys:
        for name in wish.names or keys(wish.provider):
            homes[name] = homes.get(name, frozenset()) | frozenset(wish.origins)
    return homes


def with_granted_origins(
    stored: StoredCredential | None, settings: Settings
) -> StoredCredential | None:
    """What is stored, with the origins that a person granted besides those it was saved for."""
    if stored is None:
        return None
    wishes = [each for each in settings.granted_keys if each.provider == stored.integration_id]
    granted = [origin for wish in wishes for origin in wish.origins]
    return replace(stored, origins=(*stored.origins, *granted)) if granted else stored


def _no_keys(provider_id: str) -> tuple[str, ...]:
    return ()
