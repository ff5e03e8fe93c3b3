"""The integrations of a Location: its providers, as far as they take a credential.

How one can be connected comes from the Catalog and from the user's configuration, how it is
connected from what is stored and from the environment. Storing is location.models.credentials;
attempts to log in are runtime.locations.integrations.

Invariant: a project has no say in where a new credential may be sent, nor in how one logs in.
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
"""The `kind` of a refused connection, as clients know it."""

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
        """In the order of their names; raises ServiceUnavailableError."""
        stored = self._readable()
        found = [each for each in self._catalog.everyone.values() if _takes_credential(each)]
        found.sort(key=lambda provider: (provider.name.casefold(), provider.id))
        return tuple(self._info(provider, stored) for provider in found)

    def get(self, integration_id: str) -> IntegrationInfo:
        """Raises IntegrationNotFoundError or ServiceUnavailableError."""
        return self._info(self._provider(integration_id), self._readable())

    def method(self, integration_id: str, method_id: str) -> LoginMethod:
        """How to log in; raises IntegrationNotFoundError or InvalidRequestError."""
        self._provider(integration_id)
        for method in self._logins.get(integration_id, ()):
            if method.id == method_id:
                return method
        raise InvalidRequestError(
            f"{integration_id} has no login called {method_id[:60]!r}", kind=AUTHORIZATION
        )

    def origins(self, integration_id: str) -> tuple[str, ...]:
        """Where a credential that is saved now may be sent: never where only a project says.

        Raises IntegrationNotFoundError, or InvalidRequestError when there is no such place.
        """
        self._provider(integration_id)
        provider = self._catalog.without_project(integration_id)
        if provider is None:
            raise InvalidRequestError(
                f"{integration_id} is defined by this project alone, and a credential would go"
                " wherever the project says. Define its address in your own configuration first.",
                kind=AUTHORIZATION,
            )
        found = _origins(provider, self._variables)
        if not found:
            raise InvalidRequestError(
                f"{integration_id} has no address yet that a credential could be kept for."
                " Configure it first.",
                kind=AUTHORIZATION,
            )
        return tuple(sorted(found))

    def _provider(self, integration_id: str) -> CatalogProvider:
        provider = self._catalog.everyone.get(integration_id)
        if provider is None or not _takes_credential(provider):
            raise IntegrationNotFoundError(integration_id)
        return provider

    def _readable(self) -> Mapping[str, StoredCredential]:
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
        held = stored.get(provider.id)
        if held is not None:
            connections.append(CredentialConnection(id=held.id, label=held.label))
        present = (name for name in provider.env if self._variables.get(name))
        connections.extend(EnvConnection(name) for name in present)
        return IntegrationInfo(
            id=provider.id,
            name=provider.name,
            methods=tuple(methods),
            connections=tuple(connections),
        )


def _takes_credential(provider: CatalogProvider) -> bool:
    # The models come last: of a provider that is only known they are not even made yet.
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
