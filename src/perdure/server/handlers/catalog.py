"""The models and providers of a Location."""

from typing import Final

from perdure.protocol.models import catalog
from perdure.schema.models.model import ModelInfo, ProviderInfo
from perdure.server.call import Call, Handlers


async def list_models(call: Call[None, None]) -> tuple[ModelInfo, ...]:
    return await call.services.locations.models(call.location())


async def list_providers(call: Call[None, None]) -> tuple[ProviderInfo, ...]:
    return await call.services.locations.providers(call.location())


async def get_provider(call: Call[None, None]) -> ProviderInfo:
    return await call.services.locations.provider(call.location(), call.params["providerID"])


HANDLERS: Final[Handlers] = {
    catalog.LIST_MODELS.operation_id: list_models,
    catalog.LIST_PROVIDERS.operation_id: list_providers,
    catalog.GET_PROVIDER.operation_id: get_provider,
}
