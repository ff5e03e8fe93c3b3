"""The providers that everybody knows, as the catalog has them where nothing is configured.

Made once from an archive of facts and shared by all Locations. A provider's models are read from
the archive when somebody looks at them. Keys are found in location.catalog.

Invariant: facts that were fetched pair no key with an address, if the facts that come with the
program know that key, and put no variable into an address that those do not.
"""

from collections.abc import Mapping

from msgspec.structs import replace

from perdure.core import catalog, model_facts, vertex_access
from perdure.core.catalog import CatalogModel, CatalogProvider, LazyModels
from perdure.core.config_entry import ProviderEntry
from perdure.core.model_archive import ModelArchive
from perdure.core.model_facts import EXPERIMENTAL


class KnownProviders:
    """Implements catalog.Known."""

    def __init__(
        self, archive: ModelArchive, variables: Mapping[str, str], *, bundled: ModelArchive
    ) -> None:
        self._archive = archive
        self._variables = _harmless(variables, bundled)
        self.providers: Mapping[str, CatalogProvider] = {
            name: self._provider(name) for name in archive.providers
        }
        self.origins: Mapping[str, frozenset[str]] = {
            **self._pairs(archive, variables),
            **self._pairs(bundled, variables),
        }
        """Variable that is set and holds a key -> where it may be sent."""

    def entry(self, provider_id: str) -> ProviderEntry | None:
        provider = self._archive.providers.get(provider_id)
        if provider is None:
            return None
        return model_facts.entry(provider, self._archive.models(provider_id), self._variables)

    def keys(self, provider_id: str) -> tuple[str, ...]:
        """The variables that may hold a provider's key."""
        provider = self._archive.providers.get(provider_id)
        return () if provider is None else provider.keys

    def _provider(self, name: str) -> CatalogProvider:
        bare = model_facts.entry(self._archive.providers[name], {}, self._variables)

        def models() -> dict[str, CatalogModel]:
            return dict(catalog.made(name, self.entry(name) or bare).models)

        return replace(catalog.made(name, bare, configured=False), models=LazyModels(models))

    def _pairs(
        self, archive: ModelArchive, variables: Mapping[str, str]
    ) -> dict[str, frozenset[str]]:
        pairs: dict[str, frozenset[str]] = {}
        for provider in archive.providers.values():
            for name in provider.keys:
                if variables.get(name):
                    origins = model_facts.origins(provider, self._variables)
                    pairs[name] = pairs.get(name, frozenset()) | origins
        return pairs


def _harmless(variables: Mapping[str, str], bundled: ModelArchive) -> dict[str, str]:
    """What facts may read of the user's environment: parts of addresses, and no secret."""
    parts = {name for provider in bundled.providers.values() for name in provider.parts}
    given = {name: variables[name] for name in (*parts, EXPERIMENTAL) if name in variables}
    return given | vertex_access.address_parts(variables)
