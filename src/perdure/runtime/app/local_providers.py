"""Model servers on this machine, offered as providers of the catalog."""

from perdure.core.models import catalog
from perdure.core.models.catalog import CatalogProvider
from perdure.host import local_models
from perdure.host.environment import Environment
from perdure.host.http.client import HttptoolsTransport
from perdure.host.local_models import LocalServer


async def find_local_providers(environment: Environment) -> tuple[CatalogProvider, ...]:
    """Probe the usual loopback ports; a server that answers in time becomes a provider."""
    transport = HttptoolsTransport()
    try:
        probes = local_models.default_probes(environment.variables)
        return tuple(map(_provider, await local_models.discover(transport, probes)))
    finally:
        await transport.aclose()


def _provider(server: LocalServer) -> CatalogProvider:
    contexts = {model.id: model.context_limit or 0 for model in server.models}
    return catalog.local_provider(server.kind, server.base_url, contexts)
