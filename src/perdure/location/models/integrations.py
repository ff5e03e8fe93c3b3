"""The integrations of a Location: its providers that take a credential.

The methods to connect one come from the Catalog and the user's configuration, its connections from
the stored credentials and the environment. location.models.credentials stores them;
runtime.locations.integrations runs login attempts.

Invariant: a project cannot decide where a new credential may be sent, nor how a login works.
"""

from collections.abc import Callable, Mapping

from msgspec import UNSET

from perdure.core.credentials import keys
from perdure.core.credentials.keys import StoreUnreadable
from perdure.core.credentials.oauth import LoginMethod
from perdure.core.models import access, transport
from perdure.core.models.catalog import CatalogProvider
from perdure.core.models.transport import HttpProtocol
from perdure.location.models.catalog import Catalog
from perdure.schema.errors import (
    IntegrationNotFoundError,
    InvalidRequestError,
    ServiceUnavailableError,
)
from perdure.schema.models.credential import StoredCredential
from perdure.schema.models.integration import (
    Connection,
    CredentialConnection,
    EnvConnection,
    EnvMethod,
    IntegrationInfo,
    IntegrationMethod,
    KeyMethod,
    OAuthMethod,
)

AUTHORIZATION = "integration_authorization"
"""The `kind` of the error for a refused connection."""

StoredNow = Callable[[], Mapping[str, StoredCredential] | StoreUnreadable]


class Integrations:
    def __init__(
        self,
        catalog: Catalog,
        *,
        logins: Mapping[str, tuple[LoginMethod, ...]],
        variables: Mapping[str, str],
        stored: StoredNow,
    ) -> None:
        self._catalog = catalog
        self._logins = logins
        self._variables = variables
        self._stored = stored

    def list(self) -> tuple[IntegrationInfo, ...]:
        """All integrations, sorted by name. Raises ServiceUnavailableError."""
        stored = self._require_stored()
        providers = self._catalog.all_providers.values()
        found = [provider for provider in providers if _takes_credential(provider)]
        found.sort(key=lambda provider: (provider.name.casefold(), provider.id))
        return tuple(self._info(provider, stored) for provider in found)

    def get(self, integration_id: str) -> IntegrationInfo:
        """Raises IntegrationNotFoundError or ServiceUnavailableError."""
        return self._info(self._provider(integration_id), self._require_stored())

    def method(self, integration_id: str, method_id: str) -> LoginMethod:
        """A login method. Raises IntegrationNotFoundError or InvalidRequestError."""
        self._provider(integration_id)
        for method in self._logins.get(integration_id, ()):
            if method.id == method_id:
                return method
        raise InvalidRequestError(
            f"{integration_id} has no login called {method_id[:60]!r}", kind=AUTHORIZATION
        )

    def origins(self, integration_id: str) -> tuple[str, ...]:
        """The origins that a new credential may be sent to: never one that only a project names.

        Raises IntegrationNotFoundError, or InvalidRequestError when there is none.
        """
        self._provider(integration_id)
        provider = self._catalog.without_project(integration_id)
        if provider is None:
            raise InvalidRequestError(
                f"{integration_id} is defined only by this project, and a credential would be sent"
                " wherever the project says. Define its URL in your own configuration first.",
                kind=AUTHORIZATION,
            )
        found = _origins(provider, self._variables)
        if not found:
            raise InvalidRequestError(
                f"{integration_id} has no URL that a credential could be sent to."
                " Configure one first.",
                kind=AUTHORIZATION,
            )
        return tuple(sorted(found))

    def _provider(self, integration_id: str) -> CatalogProvider:
        provider = self._catalog.all_providers.get(integration_id)
        if provider is None or not _takes_credential(provider):
            raise IntegrationNotFoundError(integration_id)
        return provider

    def _require_stored(self) -> Mapping[str, StoredCredential]:
        stored = self._stored()
        if isinstance(stored, StoreUnreadable):
            raise ServiceUnavailableError(stored.reason, service="credentials")
        return stored

    def _info(
        self, provider: CatalogProvider, stored: Mapping[str, StoredCredential]
    ) -> IntegrationInfo:
        methods: list[IntegrationMethod] = [KeyMethod()]
        if provider.env:
            methods.append(EnvMethod(provider.env))
        logins = self._logins.get(provider.id, ())
        methods.extend(
            OAuthMethod(id=each.id, label=each.label, prompts=each.prompts or UNSET)
            for each in logins
        )
        connections: list[Connection] = []
        credential = stored.get(provider.id)
        if credential is not None:
            connections.append(CredentialConnection(id=credential.id, label=credential.label))
        present = (name for name in provider.env if self._variables.get(name))
        connections.extend(EnvConnection(name) for name in present)
        return IntegrationInfo(
            id=provider.id,
            name=provider.name,
            methods=tuple(methods),
            connections=tuple(connections),
        )


def _takes_credential(provider: CatalogProvider) -> bool:
    # The models come last: those of a provider that is not configured are not built yet.
    return (
        bool(provider.env)
        or isinstance(transport.transport_of(provider.api), HttpProtocol)
        or any(isinstance(model.transport, HttpProtocol) for model in provider.models.values())
    )


def _origins(provider: CatalogProvider, variables: Mapping[str, str]) -> frozenset[str]:
    reached = [(provider.api, transport.transport_of(provider.api))]
    reached += [(model.api, model.transport) for model in provider.models.values()]
    urls = (
        access.url_of(api, wire, variables)
        for api, wire in reached
        if isinstance(wire, HttpProtocol)
    )
    return frozenset(origin for url in urls if (origin := keys.origin_of(url)) is not None)
