"""Model servers running on this machine, as providers. Looked for only when somebody asks."""

from perdure.core.models import catalog
from perdure.core.models.catalog import CatalogProvider
from perdure.host import local_models
from perdure.host.environment import Environment
from perdure.host.http.client import HttptoolsTransport
from perdure.host.local_models import LocalServer


async def find(environment: Environment) -> tuple[CatalogProvider, ...]:
    """Whoever answers on the usual loopback ports within a moment."""
    transport = HttptoolsTransport()
    try:
        probes = local_models.default_probes(environment.variables)
        return tuple(map(_provider, await local_models.discover(transport, probes)))
    finally:
        await transport.aclose()


def _provider(server: LocalServer) -> CatalogProvider:
    contexts = {model.id: model.context_limit or 0 for model in server.models}
    return catalog.local_provider(server.kind, server.base_url, contexts)
