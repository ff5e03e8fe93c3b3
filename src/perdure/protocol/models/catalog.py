"""The catalog of a Location: models and providers without secrets."""

from typing import Final

from perdure.protocol.endpoint import REFUSALS, Endpoint, Success
from perdure.schema.errors import ProviderNotFoundError, ServiceUnavailableError
from perdure.schema.models.model import DefaultModel, ModelInfo, ProviderInfo

_CATALOG: Final = (*REFUSALS, ServiceUnavailableError)

LIST_MODELS: Final = Endpoint(
    operation_id="v2.model.list",
    method="GET",
    path="/api/model",
    group="models",
    scope="location",
    success=Success("location_data", tuple[ModelInfo, ...]),
    errors=_CATALOG,
)
DEFAULT_MODEL: Final = Endpoint(
    operation_id="v2.model.default",
    method="GET",
    path="/api/model/default",
    group="models",
    scope="location",
    success=Success("location_data", DefaultModel),
    errors=_CATALOG,
)
LIST_PROVIDERS: Final = Endpoint(
    operation_id="v2.provider.list",
    method="GET",
    path="/api/provider",
    group="providers",
    scope="location",
    success=Success("location_data", tuple[ProviderInfo, ...]),
    errors=_CATALOG,
)
GET_PROVIDER: Final = Endpoint(
    operation_id="v2.provider.get",
    method="GET",
    path="/api/provider/{providerID}",
    group="providers",
    scope="location",
    success=Success("location_data", ProviderInfo),
    errors=(*_CATALOG, ProviderNotFoundError),
)

ENDPOINTS: Final = (LIST_MODELS, DEFAULT_MODEL, LIST_PROVIDERS, GET_PROVIDER)
