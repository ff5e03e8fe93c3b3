"""The providers that everybody knows, as the catalog has them where nothing is configured.

Made once from an archive of facts and shared by all Locations. A provider's models are read from
the archive when somebody looks at them. Keys are found in location.models.catalog.

Invariant: facts that were fetched pair no key with an address, if the facts that come with the
program know that key, and put no variable into an address that those do not.
"""

from collections.abc import Mapping
from functools import lru_cache

from msgspec.structs import replace

from perdure.core.config_file.entries import ProviderEntry
from perdure.core.models import catalog, facts, vertex
from perdure.core.models.catalog import CatalogModel, CatalogProvider, LazyModels
from perdure.core.models.facts import EXPERIMENTAL
from perdure.core.models.facts_archive import ModelArchive


class KnownProviders:
    """Implements catalog.Known."""

    def __init__(
        self, archive: ModelArchive, variables: Mapping[str, str], *, bundled: ModelArchive
    ) -> None:
        self._archive = archive
        self._variables = _readable_variables(variables, bundled)
        self.providers = _unconfigured(archive, tuple(sorted(self._variables.items())))
        self.origins: Mapping[str, frozenset[str]] = {
            **self._pairs(archive, variables),
            **self._pairs(bundled, variables),
        }
        """Variable that is set and holds a key -> where it may be sent."""

    def entry(self, provider_id: str) -> ProviderEntry | None:
        return _entry(self._archive, provider_id, self._variables)

    def keys(self, provider_id: str) -> tuple[str, ...]:
        """The variables that may hold a provider's key."""
        provider = self._archive.providers.get(provider_id)
        return () if provider is None else provider.keys

    def _pairs(
        self, archive: ModelArchive, variables: Mapping[str, str]
    ) -> dict[str, frozenset[str]]:
        pairs: dict[str, frozenset[str]] = {}
        for provider in archive.providers.values():
            for name in provider.env:
                if variables.get(name) and name in provider.keys:
                    origins = facts.origins(provider, self._variables)
                    pairs[name] = pairs.get(name, frozenset()) | origins
        return pairs


@lru_cache(maxsize=2)
def _unconfigured(
    archive: ModelArchive, given: tuple[tuple[str, str], ...]
) -> Mapping[str, CatalogProvider]:
    """Kept for the runtimes of one process, which know the same facts and variables."""
    variables = dict(given)
    return {name: _provider(archive, name, variables) for name in archive.providers}


def _provider(archive: ModelArchive, name: str, variables: Mapping[str, str]) -> CatalogProvider:
    bare = facts.entry(archive.providers[name], {}, variables)

    def models() -> dict[str, CatalogModel]:
        return dict(catalog.make_provider(name, _entry(archive, name, variables) or bare).models)

    return replace(catalog.make_provider(name, bare, configured=False), models=LazyModels(models))


def _entry(archive: ModelArchive, name: str, variables: Mapping[str, str]) -> ProviderEntry | None:
    provider = archive.providers.get(name)
    return provider and facts.entry(provider, archive.models(name), variables)


@lru_cache(maxsize=2)
def _parts(archive: ModelArchive) -> frozenset[str]:
    return frozenset(name for provider in archive.providers.values() for name in provider.parts)


def _readable_variables(variables: Mapping[str, str], bundled: ModelArchive) -> dict[str, str]:
    """What facts may read of the user's environment: parts of addresses, and no secret."""
    readable = (*_parts(bundled), EXPERIMENTAL)
    given = {name: variables[name] for name in readable if name in variables}
    return given | vertex.address_parts(variables)
