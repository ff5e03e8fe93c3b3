"""The catalog as clients see it: exactly the fields named here.

Headers, bodies, settings and the options of variants are always empty, because they may hold keys.
URLs lose their credentials, query and fragment.
"""

from msgspec import UNSET

from perdure.core.credentials import keys
from perdure.core.models.catalog import CatalogModel, CatalogProvider
from perdure.core.models.transport import Api
from perdure.schema.models.model import (
    ApiInfo,
    ModelInfo,
    ModelTime,
    ProviderInfo,
    RequestInfo,
    VariantInfo,
)


def public_provider(provider: CatalogProvider) -> ProviderInfo:
    return ProviderInfo(
        id=provider.id,
        name=provider.name,
        api=_public_api(provider.api),
        request=RequestInfo(headers={}, body={}),
        disabled=True if provider.disabled else UNSET,
    )


def public_model(model: CatalogModel) -> ModelInfo:
    return ModelInfo(
        id=model.id,
        provider_id=model.provider_id,
        name=model.name,
        api=_public_api(model.api, id=model.wire_name),
        capabilities=model.capabilities,
        request=RequestInfo(headers={}, body={}),
        variants=tuple(VariantInfo(id=name, headers={}, body={}) for name in model.variants),
        time=ModelTime(released=model.released),
        cost=model.cost,
        status=model.status,
        enabled=model.enabled,
        limit=model.limit,
        family=model.family or UNSET,
    )


def _public_api(api: Api, *, id: str | None = None) -> ApiInfo:
    return ApiInfo(
        type=api.type,
        package=api.package or UNSET,
        url=keys.public_url(api.url) or UNSET,
        id=id or UNSET,
        settings={} if api.type == "native" else UNSET,
    )
