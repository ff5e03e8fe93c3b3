"""Where keys may be sent: known origins, the user's configuration, and grants.

An environment variable has no address of its own. It may be sent to the known origins of its
provider, to those that the user's own configuration pairs it with, and to those that a person
granted by trusting a project's document (core.settings.trust). Choosing the key of a request is
core.credentials.keys.
"""

from msgspec.structs import replace

from perdure.core.credentials import keys as credential
from perdure.core.models.known_providers import KnownProviders
from perdure.core.settings.settings import Settings
from perdure.schema.models.credential import StoredCredential


def variable_origins(settings: Settings, known: KnownProviders | None) -> dict[str, frozenset[str]]:
    """Variable name -> the origins that it may be sent to."""
    keys = known.keys if known else _no_keys
    origins = dict(known.origins) if known else {}
    for name, configured in credential.user_origins(settings.user_providers, keys).items():
        origins[name] = origins.get(name, frozenset()) | configured
    for request in settings.granted_keys:
        for name in request.names or keys(request.provider):
            origins[name] = origins.get(name, frozenset()) | frozenset(request.origins)
    return origins


def with_granted_origins(
    stored: StoredCredential | None, settings: Settings
) -> StoredCredential | None:
    """The stored credential with the additional origins that a person granted."""
    if stored is None:
        return None
    requests = [each for each in settings.granted_keys if each.provider == stored.integration_id]
    granted = [origin for request in requests for origin in request.origins]
    return replace(stored, origins=(*stored.origins, *granted)) if granted else stored


def _no_keys(provider_id: str) -> tuple[str, ...]:
    return ()
